"""Training: the loss, teacher forcing, the LightningModules, and what watches over a run."""
