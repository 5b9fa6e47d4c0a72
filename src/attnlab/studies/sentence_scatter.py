"""How the means of a study's systems scatter by the choice of the test sentences.

All systems that were tested on the same sentences are measured on the same samples of these, so
that what is hard for all of them leaves their differences alone. Systems that were tested on other
sentences, those of another language for example, vary independently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray

from attnlab.evaluation.significance import resampled_sums, scores_of_samples
from attnlab.files import atomic_file
from attnlab.studies.measured_rows import MeasuredRows, SentenceCovariances, pairs_of
from attnlab.studies.measurements import Point
from attnlab.studies.sentence_counts import SENTENCE_COUNTS, SentenceCounts

SAMPLES = 1000
SEED = 1  # of the samples


def sentence_covariances(
    points: Sequence[Point], measured: MeasuredRows, measurement: str
) -> SentenceCovariances:
    """The covariances of the systems' means over the seeds that learnt.

    Empty where the seeds of one system were tested on different sentences, and where the
    measurement is not one of `SENTENCE_COUNTS`.

    points: measured already.
    """
    count = SENTENCE_COUNTS.get(measurement)
    if count is None:
        return SentenceCovariances()
    scores = _ScoresOfSamples()
    for point in points:
        if measured.learnt_by_seed(point.system).get(point.seed, False):
            scores.add(count(point))
    if not scores.have_one_test_set_each():
        return SentenceCovariances()
    by_measure = {
        name: _covariances(means, scores.test_set_of) for name, means in scores.means().items()
    }
    return SentenceCovariances(by_measure, scores.fewest_sentences)


class _ScoresOfSamples:
    """The metrics of the models on samples of their test sentences.

    The samples are the same for all models of the same test set.
    """

    def __init__(self) -> None:
        self._test_sets: dict[str, set[str]] = {}  # by system
        self._sentences: dict[str, int] = {}  # by test set
        self._by_measure: dict[str, dict[str, list[NDArray[np.float64]]]] = {}

    def add(self, model: SentenceCounts) -> None:
        self._sentences[model.test_set] = model.sentences
        for system in model.by_system:
            self._test_sets.setdefault(system, set()).add(model.test_set)
        measured = [
            (system, measure, counts)
            for system, by_measure in model.by_system.items()
            for measure, counts in by_measure.items()
        ]
        if not measured:
            return
        random = np.random.default_rng(SEED)
        statistics = [counts.statistics for _, _, counts in measured]
        all_sums = resampled_sums(statistics, SAMPLES, random)
        for (system, measure, counts), sums in zip(measured, all_sums, strict=True):
            of_measure = self._by_measure.setdefault(measure, {})
            scores = scores_of_samples(counts.metric, sums)
            of_measure.setdefault(system, []).append(scores)

    def have_one_test_set_each(self) -> bool:
        """Whether all seeds of each system were tested on the same sentences."""
        return all(len(test_sets) == 1 for test_sets in self._test_sets.values())

    def test_set_of(self, system: str) -> str:
        (test_set,) = self._test_sets[system]
        return test_set

    @property
    def fewest_sentences(self) -> int:
        return min(self._sentences.values(), default=0)

    def means(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        """{measure: {system: (B,) the mean over its seeds}}."""
        return {
            measure: {system: np.mean(scores, axis=0) for system, scores in of_measure.items()}
            for measure, of_measure in self._by_measure.items()
        }


def _covariances(
    means: Mapping[str, NDArray[np.float64]], test_set_of: Callable[[str], str]
) -> dict[tuple[str, str], float]:
    covariances: dict[tuple[str, str], float] = {}
    for one, other in pairs_of(list(means)):
        found = 0.0
        if test_set_of(one) == test_set_of(other):
            found = float(np.cov(means[one], means[other])[0, 1])
        covariances[one, other] = covariances[other, one] = found
    return covariances


def write_covariances(covariances: SentenceCovariances, path: Path) -> None:
    """Write a row for each measure and pair of systems; nothing where there are none."""
    rows = []
    for measure, of_pairs in covariances.by_measure.items():
        systems = list(dict.fromkeys(system for system, _ in of_pairs))
        for one, other in pairs_of(systems):
            rows.append(
                {
                    "measure": measure,
                    "system": one,
                    "other": other,
                    "covariance": of_pairs[one, other],
                    "sentences": covariances.sentences,
                }
            )
    if not rows:
        return
    with atomic_file(path) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False)


def read_covariances(path: Path) -> SentenceCovariances:
    """Those of a file; none where there is no file."""
    if not path.is_file():
        return SentenceCovariances()
    by_measure: dict[str, dict[tuple[str, str], float]] = {}
    sentences = 0
    for row in pd.read_csv(path).to_dict("records"):
        of_measure = by_measure.setdefault(row["measure"], {})
        of_measure[row["system"], row["other"]] = row["covariance"]
        of_measure[row["other"], row["system"]] = row["covariance"]
        sentences = row["sentences"]
    return SentenceCovariances(by_measure, sentences)
