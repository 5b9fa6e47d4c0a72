"""Which source tokens the attention may look at, step by step: one file a scope."""
