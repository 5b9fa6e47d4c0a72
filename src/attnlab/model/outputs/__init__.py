"""The outputs: from what a decoder's step found to probabilities over the vocabulary."""
