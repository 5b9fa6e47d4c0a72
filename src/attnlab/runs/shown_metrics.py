"""Metrics as MLflow shows them: their names and steps there.

MLflow draws a section of charts for each prefix, in the order of the alphabet, and `system/` last.
A metric that has a value at step 0 alone becomes a bar chart over all runs; at a later step it is a
lone dot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlflow.entities import Metric

from attnlab.config.params import accepted_name
from attnlab.runs.run_folder import LAYOUT
from attnlab.training.spool import Record

TEST = "test/"
# What a training costs stands behind what it learns.
_COSTS, _SYSTEM = ("speed/", "time/"), "system/"


def shown_name(name: str) -> str:
    """The name of a metric in MLflow; one that MLflow has by an older name gets its present one."""
    for prefix in _COSTS:
        if name.startswith(prefix):
            return accepted_name(_SYSTEM + name.removeprefix(prefix))
    return accepted_name(name)


def shown_points(records: Sequence[Record], layout: int = LAYOUT) -> Iterator[Metric]:
    """The points of records in MLflow, with the epoch of each step once."""
    last = None
    for record in records:
        values = dict(record.metrics)
        if record.epoch is not None and record.step != last:
            values["epoch"] = record.epoch
            last = record.step
        for name, value in values.items():
            if layout < LAYOUT:
                yield Metric(accepted_name(name), value, record.time, record.step)
            else:
                # The step of the tested model is a tag of the run.
                step = 0 if name.startswith(TEST) else record.step
                yield Metric(shown_name(name), value, record.time, step)


def tested_step(records: Sequence[Record]) -> int | None:
    """The training step of the model that was tested last; None where none was."""
    steps = [
        record.step for record in records if any(name.startswith(TEST) for name in record.metrics)
    ]
    return steps[-1] if steps else None
