"""The task of sequence tagging: a tag for each token."""
