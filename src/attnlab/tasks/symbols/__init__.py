"""A step as a sheet of symbols: each vector and matrix with the operation that makes it."""
