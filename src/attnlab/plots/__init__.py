"""Figures and offline HTML pages; figures use matplotlib's objects, without pyplot."""
