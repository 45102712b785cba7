"""Plans in words, and what they are expected to cost."""
