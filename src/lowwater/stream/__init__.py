"""The values that flow: elements, marks, times and windows, below operators and engines."""
