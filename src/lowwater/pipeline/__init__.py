"""Pipeline files: where their streams come from, where their answers go, and how they are run."""
