"""The comparison of many runs: which systems differ, by how much, at what price."""
