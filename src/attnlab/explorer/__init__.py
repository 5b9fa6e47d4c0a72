"""A local page on which one changes the attention of trained models and sees what happens."""
