"""How often the decoder is fed the reference in training: one file a schedule."""
