"""The layers of a Transformer, which its encoder and its decoder share."""
