"""The query language: text to logical nodes."""
