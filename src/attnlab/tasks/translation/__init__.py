"""The task of translation: sentences to sentences."""
