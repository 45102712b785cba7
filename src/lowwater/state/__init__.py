"""What is remembered: columnar chunks addressed by (name, time slice, sequence)."""
