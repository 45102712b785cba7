"""Node by node to operators: rows, aggregates, joins."""
