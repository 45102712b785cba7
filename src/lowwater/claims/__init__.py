"""Claims are the experiments of the papers, run on our own operators and judged."""
