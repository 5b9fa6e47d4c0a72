"""From a corpus to padded batches: load, clean, tokenise, encode, store; then sample and pad."""
