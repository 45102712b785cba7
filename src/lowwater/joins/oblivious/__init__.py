"""Joins that need no window: what is kept follows from how disordered the inputs are (WO-Join)."""
