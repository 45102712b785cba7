"""Sources of our own on Spark: a replay, and the clock."""
