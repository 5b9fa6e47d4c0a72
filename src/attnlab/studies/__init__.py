"""Studies: questions asked with many seeds, and what became of them."""
