"""Where rows come from: logs, generators, files, sockets, live pushes."""
