"""Training: settings, loss, teacher forcing, optimizers, checkpoints, resume, metric spool.

A training resumes exactly, to the bit.
"""
