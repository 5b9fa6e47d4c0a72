"""Histories: what an attention remembers from step to step, a file each."""
