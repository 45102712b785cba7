"""The language of expressions: its functions, their types, and what Polars computes for them."""
