"""Metrics that a config adds: measured on the rows of an evaluation, and recorded beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from attnlab.config.binding import bind
from attnlab.config.identity import foreign_modules
from attnlab.config.part import failure_of
from attnlab.errors import ExperimentError
from attnlab.evaluation.corpus_metric import CorpusMetric, Rows
from attnlab.evaluation.measures import Measure


@dataclass(frozen=True)
class RecordedMetric:
    """A metric of an evaluation that its config added, as `task.json` records it.

    node: of the config, which makes the metric again.
    """

    measure: Measure
    node: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        measure = {**asdict(self.measure), "least": None, "most": None}
        # JSON has no infinity; None is no limit.
        for end in ("least", "most"):
            limit = getattr(self.measure, end)
            measure[end] = limit if np.isfinite(limit) else None
        return {"measure": measure, "node": self.node}

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> RecordedMetric:
        measure = dict(content["measure"])
        if measure["least"] is None:
            measure["least"] = -np.inf
        if measure["most"] is None:
            measure["most"] = np.inf
        return cls(Measure(**measure), dict(content["node"]))

    def metric(self, allow: Collection[str]) -> CorpusMetric | None:
        """The metric itself; None where its code is neither attnlab's nor allowed.

        allow: modules outside of attnlab.
        """
        if foreign_modules(self.node, allow):
            return None
        metric: CorpusMetric = bind(self.node, CorpusMetric, f"metrics.{self.measure.name}")
        return metric


def measured(metrics: Mapping[str, CorpusMetric], rows: Rows) -> dict[str, float]:
    """The value of each metric on these rows.

    Raises ExperimentError where a metric's own code fails, or gives no number a sentence.
    """
    found = {}
    for name, metric in metrics.items():
        with _failure_named(name, metric, "statistics"):
            statistics = np.asarray(metric.statistics(rows), dtype=np.float64)
        expected = (len(rows), metric.sums)
        if statistics.shape != expected:
            raise ExperimentError(
                f"metrics.{name}: {type(metric).__name__}.statistics must return (sentences, sums) "
                f"= {expected} numbers, got {statistics.shape}"
            )
        with _failure_named(name, metric, "scores"):
            (value,) = metric.scores(statistics.sum(axis=0, keepdims=True))
        found[name] = float(value)
    return found


@contextmanager
def _failure_named(name: str, metric: CorpusMetric, method: str) -> Iterator[None]:
    """Raise ExperimentError, with the place in the config, where a metric's own code fails."""
    try:
        yield
    except Exception as error:
        kind = type(metric)
        reason = failure_of(error, kind)
        raise ExperimentError(
            f"metrics.{name}: {kind.__name__}.{method} failed: {reason}"
        ) from error
