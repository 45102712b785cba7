"""lowwater has two Spark sources of its own: a replay and the clock."""
