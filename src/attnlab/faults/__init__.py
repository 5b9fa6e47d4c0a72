"""The museum of mistakes: known faults of teaching code and toolkits, each a choice of `fault`.

A file a fault. Nothing in model/, training/ or evaluation/ knows of them: a fault changes a right
model, its training or its evaluation from outside, after it is built.
"""
