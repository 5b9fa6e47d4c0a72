"""An experiment: composed, checked, its task, its folder, and the plan of a sweep."""
