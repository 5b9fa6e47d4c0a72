"""The task of classification: sentences to labels."""
