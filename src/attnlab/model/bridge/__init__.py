"""From the encoder's final state to the decoder's first state: one file a bridge."""
