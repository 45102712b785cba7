"""The memory of update queues: rows in pages that are taken and given back (UpStream §7)."""
