"""Planning turns a query into kernels, by way of logical nodes and physical operators."""
