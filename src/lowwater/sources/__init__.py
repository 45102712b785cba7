"""Where rows come from: replayed arrival logs, generated streams, live pushes."""
