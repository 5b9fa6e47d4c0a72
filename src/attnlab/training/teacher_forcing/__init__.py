"""How often the decoder is fed the reference in training (one file a schedule), and the coins that decide where."""
