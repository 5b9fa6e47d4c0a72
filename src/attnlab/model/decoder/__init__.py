"""The decoders: when the attention looks, and where its context goes."""
