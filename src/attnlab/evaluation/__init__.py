"""Text metrics, alignment error rates, attention statistics and significance tests."""
