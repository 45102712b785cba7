"""The forms in which driver and workers exchange things: messages, programs, reports, errors."""
