"""The workers' part: stages, their state, and what they send."""
