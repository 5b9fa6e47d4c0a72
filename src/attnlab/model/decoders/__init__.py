"""The decoders: the base class of all of them, and a file for each kind."""
