"""Figures (by matplotlib's objects, without pyplot) and offline HTML pages."""
