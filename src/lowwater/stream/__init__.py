"""The values that flow between operators: elements and marks; and the arithmetic of times, windows
and durations."""
