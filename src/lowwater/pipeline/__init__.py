"""Pipeline files: the sources of their streams, the targets of their answers, and their runs."""
