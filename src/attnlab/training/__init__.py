"""Training: settings, teacher forcing, loss, the LightningModules, checkpoints, exact resume and
the metric spool.
"""
