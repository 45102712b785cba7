"""The driver turns a plan into a running query, and has its inputs, metrics and checkpoint."""
