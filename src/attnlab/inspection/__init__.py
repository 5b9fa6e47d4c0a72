"""Probing an attention module of anybody's for the mistakes that such modules have."""
