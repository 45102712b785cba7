"""Driver and workers exchange these values: programs, messages, reports, errors and files."""
