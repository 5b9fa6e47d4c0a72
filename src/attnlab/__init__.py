"""attnlab: a laboratory for attention in sequence-to-sequence learning."""

__version__ = "0.1.0"
