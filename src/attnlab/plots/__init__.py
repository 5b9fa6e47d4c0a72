"""Heat maps and curves: figures, offline HTML. Figures are made with matplotlib's objects, without pyplot."""
