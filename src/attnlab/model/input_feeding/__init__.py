"""What a step receives from the step before, beside its token: one file for each kind."""
