"""Kernels of one input, and unions; they are pure, take rows in any order, and an engine runs
them."""
