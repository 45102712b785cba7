"""The language of expressions: functions, their types, and what Polars computes for them."""
