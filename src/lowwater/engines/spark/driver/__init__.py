"""The driver's part: from a plan to a running query, its inputs, metrics and checkpoint."""
