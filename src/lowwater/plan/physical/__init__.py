"""Physical planning compiles logical nodes to operators and lays these out over machines."""
