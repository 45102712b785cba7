"""The language of expressions has functions with types; Polars expressions compute them."""
