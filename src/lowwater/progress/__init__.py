"""Progress: the contracts of sources, the marks that follow from them, and their punctuation."""
