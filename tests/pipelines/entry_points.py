"""What the tests of the entry points share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient

from attnlab.runs.sweep_record import SweepFolder

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


def succeeded(ended: Ended) -> Ended:
    assert ended.code == 0, ended.err
    return ended


TINY = (
    "data=copy", "data.num_pairs=200", "data.max_length=6", "model.encoder.embedding_size=8",
    "model.encoder.hidden_size=8", "model.decoder.hidden_size=16", "model.readout.size=16",
    "model.attention.size=8", "training.max_steps=4", "training.validate_every=4",
    "training.batching.size=16", "training.validation_search.max_length=8", "search.size=2",
    "search.max_length=8",
)  # fmt: skip
"""An experiment of a second."""
ANY_ATTENTION = tuple(choice for choice in TINY if not choice.startswith("model.attention."))
"""The same for a choice of attentions, of which some have no size."""


def the_sweep(folder: Path) -> SweepFolder:
    """The only sweep of a folder."""
    (record,) = (folder / "runs" / "sweeps").glob("*/sweep.json")
    return SweepFolder(record.parent)


def mlflow_client(folder: Path) -> MlflowClient:
    return MlflowClient(tracking_uri=f"sqlite:///{folder}/runs/mlflow.db")
