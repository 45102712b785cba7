"""Kernels of one input, and the unions: pure, for rows in any order, driven by an engine."""
