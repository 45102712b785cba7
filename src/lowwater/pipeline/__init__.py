"""A pipeline file declares streams with sources and queries with targets, and is run as a whole."""
