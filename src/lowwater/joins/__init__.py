"""Kernels of several inputs that match rows with each other."""
