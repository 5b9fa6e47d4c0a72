"""What a step is told of the step before, beside its token: one file a way."""
