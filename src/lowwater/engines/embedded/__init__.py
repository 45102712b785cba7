"""The embedded engine: one process, no JVM, depth-first, with a real or a virtual clock."""
