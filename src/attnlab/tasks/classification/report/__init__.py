"""What the pages show of classifications."""
