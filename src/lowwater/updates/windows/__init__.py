"""Windows of update streams: each window of a key replaces the one before it (UpStream §6)."""
