"""The state of operators: columnar chunks addressed by (name, time slice, sequence)."""
