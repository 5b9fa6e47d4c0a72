"""Overrides of small experiments with a fault."""

from __future__ import annotations

# Keys are as wide as the encoder's outputs, and the query as both.
SMALL = (
    "data=copy", "data.num_pairs=60", "data.max_length=6", "data.num_symbols=5",
    "model.encoder.embedding_size=5", "model.encoder.hidden_size=8", "model.decoder.hidden_size=16",
    "model.attention.size=16", "model.readout.size=6", "search=greedy", "search.max_length=8",
    "training.validation_search.max_length=8", "training.max_steps=4", "training.validate_every=2",
    "training.batching.size=16", "tracking=none",
)  # fmt: skip
WITHOUT_SIZE = ("none", "dot", "general", "location", "uniform")  # scores
# What a fault is about, where it is not the default.
NEEDS = {"cell_from_hidden": ("model/encoder=lstm",)}


def overrides_of(fault: str, *others: str) -> list[str]:
    """Of a small experiment with a fault."""
    wanted = [*SMALL, *NEEDS.get(fault, ()), f"fault={fault}", *others]
    has_size = not any(f"model/attention={name}" in others for name in WITHOUT_SIZE)
    return [text for text in wanted if has_size or not text.startswith("model.attention.size=")]
