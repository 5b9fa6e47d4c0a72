"""What the pages show of a tagger."""
