"""A package of somebody's own: one of each part that attnlab takes from outside."""
