"""Who turns the crank: the engine seam and the engines behind it."""
