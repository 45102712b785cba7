"""One queue of updates for several queries: rows are kept once, and each query is served apart."""
