"""What the tests of the entry points share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = ROOT / "pipelines"
ATTENTIONS = ", ".join(sorted(path.stem for path in (ROOT / "conf/model/attention").glob("*.yaml")))


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]

TINY = (
    "data=copy",
    "data.num_pairs=200",
    "data.max_length=6",
    "model.encoder.embedding_size=8",
    "model.encoder.hidden_size=8",
    "model.decoder.hidden_size=16",
    "model.readout.size=16",
    "model.attention.size=8",
    "training.max_steps=4",
    "training.validate_every=4",
    "training.batching.size=16",
    "training.validation_search.max_length=8",
    "search.size=2",
    "search.max_length=8",
)
"""An experiment of a second."""
