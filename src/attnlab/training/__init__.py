"""Training: settings, teacher forcing, loss, LightningModules, checkpoints, resume, metric spool.

A training resumes exactly, to the bit.
"""
