"""The corpus prepared by attnlab, in the form that the peers read.

It consists of lines of text and of batches of row numbers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from configuration import BAHDANAU, SHARED, WORK
from running import run_attnlab

if TYPE_CHECKING:
    from attnlab.data.prepared import PreparedData


def prepared_text(data: Path) -> tuple[Path, Path]:
    """The corpus in the folder `data`, prepared by attnlab, and as text.

    attnlab's batches lie beside the text. Raises SystemExit if the folder is missing.
    """
    from attnlab.data.prepared import PreparedData

    if not data.is_dir():
        sys.exit(f"--data must be a folder with the corpus; {data} is not a folder")
    prepared, text = WORK / "data", WORK / "text"
    run_attnlab("prepare.py", *BAHDANAU, f"data.path={data.resolve()}", f"paths.data={prepared}")
    opened = PreparedData(prepared)
    write_text(opened, text)
    write_batches(opened, SHARED.batch_size, SHARED.seed, text)
    return prepared, text


def write_text(data: PreparedData, into: Path) -> None:
    """`<split>.source` and `<split>.target`, a sentence a line, in the order of attnlab's rows."""
    into.mkdir(parents=True, exist_ok=True)
    for name in ("train", "validation", "test"):
        split = data.split(name)
        for side, text in (("source", split.source_text), ("target", split.target_text)):
            lines = "".join(f"{text(row)}\n" for row in range(len(split)))
            (into / f"{name}.{side}").write_text(lines, encoding="utf-8")


def write_batches(data: PreparedData, batch_size: int, seed: int, into: Path) -> None:
    """Write attnlab's own batches as row numbers, `train.batches` and `test.batches`.

    They are those of its first epoch and of its evaluation.
    """
    from attnlab.data.sampler import Batching, BatchSampler

    for name in ("train", "test"):
        split = data.split(name)
        sampler = BatchSampler(
            split.source_lengths,
            split.target_lengths,
            Batching(by="sentences", size=batch_size),
            seed=seed,
            shuffle=name == "train",
        )
        rows = [batch.tolist() for batch in sampler.batches()]
        (into / f"{name}.batches").write_text(json.dumps(rows))
