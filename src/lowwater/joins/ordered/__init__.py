"""Joins whose results leave in the order of their times (Ordered: Sync-Filter, Filter-Order)."""
