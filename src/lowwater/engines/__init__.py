"""Two engines run plans; they share one core."""
