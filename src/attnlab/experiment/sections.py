"""Which sections of a config decide the output of each stage."""

from __future__ import annotations

# Which sections decide the output of a stage. dvc.yaml says the same to DVC. The functions that
# make it stand beside them, as PREPARE_SOURCES, TRAIN_SOURCES, ...
PREPARE_SECTIONS = ("data",)
TRAIN_SECTIONS = ("seed", "padding", "model", "training", "hardware", "trainer", "callbacks")
EVALUATE_SECTIONS = ("search", "hardware", "metrics")
