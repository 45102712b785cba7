"""Builders check the arguments of an operation and return its logical node."""
