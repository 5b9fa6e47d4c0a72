"""The base class of metrics: a function of sums over sentences, so that it can be resampled.

Axes: N sentences, K sums, B samples of sentences.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import show
from attnlab.evaluation.measures import Measure

Better = Literal["↑", "↓", ""]
Rows = Sequence[Mapping[str, Any]]
"""Lines of the file with a row a sentence: hypotheses.jsonl or predictions.jsonl."""


class CorpusMetric(ABC):
    """A metric of any sample of sentences; each sentence is counted once.

    A metric of your own is a node of the config, `metrics.<name>._target_`. The evaluation measures
    it on the test split, the report shows it, and a comparison resamples its sentences.

    label: its name on the pages; empty for the name in the config.
    better: ↑ where more is better, ↓ where less is, empty for neither.
    digits: that are shown after the decimal point.
    meaning: its definition, and what it averages over.
    least, most: its range.

    sums: K.
    """

    label: ClassVar[str] = ""
    better: ClassVar[Better] = "↑"
    digits: ClassVar[int] = 4
    meaning: ClassVar[str] = ""
    least: ClassVar[float] = -math.inf
    most: ClassVar[float] = math.inf

    sums: int

    @abstractmethod
    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        """(N, K), a row for each sentence."""

    @abstractmethod
    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """(B, K) sums over the sentences of a sample -> (B,) the metric of each sample."""

    def problems(self) -> list[str]:
        """What is wrong with the attributes of the class, a sentence each."""
        if self.better in get_args(Better):
            return []
        return [f"{type(self).__name__}.better must be ↑, ↓ or empty text, got {show(self.better)}"]

    @property
    def signature(self) -> str:
        """How it is computed: its class, its settings, and the version of its package."""
        kind = type(self)
        settings = [f"{name}:{value}" for name, value in sorted(vars(self).items())]
        package = kind.__module__.partition(".")[0]
        try:
            version = [f"version:{metadata.version(package)}"]
        except metadata.PackageNotFoundError:  # a module of the user's that is not installed
            version = []
        return "|".join([f"{kind.__module__}.{kind.__qualname__}", *settings, *version])

    def measure(self, name: str) -> Measure:
        """What the pages know of it under this name."""
        label = self.label or name.replace("_", " ")
        return Measure(
            name, label, self.better, self.digits, self.meaning, least=self.least, most=self.most
        )


class MeanOfSentences(CorpusMetric):
    """The mean over sentences of a value of each."""

    sums = 2

    @abstractmethod
    def sentence_values(self, rows: Rows) -> Sequence[float]:
        """(N,), the value of each sentence."""

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        return np.array([[value, 1.0] for value in self.sentence_values(rows)])

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return sums[:, 0] / sums[:, 1]
