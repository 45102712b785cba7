"""Sources of rows: logs, generators, files, sockets, and rows that the program pushes."""
