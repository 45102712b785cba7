"""The values that driver and workers exchange: programs, messages, reports, errors, files."""
