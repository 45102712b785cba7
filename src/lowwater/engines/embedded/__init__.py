"""The embedded engine runs a plan in one process, depth first, on a real or a virtual clock."""
