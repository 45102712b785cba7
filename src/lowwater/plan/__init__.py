"""From a query to kernels: expressions, logical nodes, rules, physical operators, explain."""
