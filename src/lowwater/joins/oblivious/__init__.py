"""Joins that need no window: the rows kept follow from the disorder of the inputs (WO-Join)."""
