"""What the pages show of translations."""
