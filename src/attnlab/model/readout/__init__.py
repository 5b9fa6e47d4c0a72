"""From a decoder's step to what the output layer reads: one file a readout."""
