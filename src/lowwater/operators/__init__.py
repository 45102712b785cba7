"""Kernels of one input, and the unions: pure, order-agnostic, driven by an engine."""
