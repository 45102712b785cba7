"""How progress is known: source contracts, the promises made from them, and who asks for them."""
