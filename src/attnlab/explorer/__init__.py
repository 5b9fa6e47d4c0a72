"""A local web page that changes the attention of trained models and shows what happens."""
