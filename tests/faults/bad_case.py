"""One try with bad input: what is given to which command, and what must become of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# An experiment of two steps, of each task. The labelled one reads `LABELLED`.
TRANSLATION = (
    "data=copy", "data.num_pairs=60", "data.max_length=5", "model.encoder.embedding_size=4",
    "model.encoder.hidden_size=4", "model.decoder.hidden_size=8", "model.decoder.embedding_size=4",
    "model.readout.size=4", "model.attention.size=4", "training.max_steps=2", "training.validate_every=2",
    "training.batching.size=16", "training.validation_search.max_length=6", "search.size=2", "search.max_length=6",
    "tracking=none",
)  # fmt: skip
CLASSIFICATION = (
    "task=classification", "data.path=labelled.csv", "data.splits.train=0.6", "data.splits.validation=0.2",
    "data.splits.test=0.2", "model.encoder.embedding_size=4", "model.encoder.hidden_size=4", "model.attention.size=4",
    "training.max_steps=2", "training.validate_every=2", "training.batching.size=16", "tracking=none",
)  # fmt: skip
LABELLED = "text,label\n" + "".join(
    f"{'a good film' if i % 2 else 'a bad film'} {i % 5},{'yes' if i % 2 else 'no'}\n" for i in range(40)
)

Expected = Literal["refused", "works", "either"]


def nothing(folder: Path) -> None:
    """Needs no files."""


@dataclass(frozen=True)
class Case:
    """
    name: what is wrong, in a few words; unlike any other's.
    kind: what it is a sample of.
    expected: `refused` before anything is written or when the fault shows, `works` to the end, or `either`.
    said: texts of which each must be in what a refusal says: the place, above all.
    problems: how many sentences a refusal may have.
    make: writes what the command reads into its folder.
    environment: beside the usual one.
    unprivileged: by a user who may not read everything, where the tests are run by one who may.
    """

    name: str
    kind: str
    script: str
    arguments: tuple[str, ...]
    expected: Expected
    said: tuple[str, ...] = ()
    problems: int = 1
    make: Callable[[Path], None] = nothing
    environment: tuple[tuple[str, str], ...] = ()
    unprivileged: bool = False


def labelled_file(folder: Path) -> None:
    (folder / "labelled.csv").write_text(LABELLED, encoding="utf-8")
