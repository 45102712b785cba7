"""The query language turns text into logical nodes."""
