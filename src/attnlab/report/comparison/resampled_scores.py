"""What each run's metrics would be on other samples of the test sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import ExperimentError
from attnlab.evaluation.sentence_statistics import CorpusMetric, classification_metrics, translation_metrics
from attnlab.evaluation.two_level_bootstrap import resampled_sums
from attnlab.report.comparison.compared_run import ComparedRun

Tell = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def resampled_scores(
    runs: Sequence[ComparedRun], samples: int, seed: int, tell: Tell
) -> dict[tuple[str, str, str], NDArray[np.float64]]:
    """{(metric, system, seed of the run): (B,)} of the metrics that follow from the sentences of a run.

    Runs with the same test set are measured on the same samples of it; each test set has samples of its own.

    Raises:
        ExperimentError: the sentences of a run give another metric than its metrics.json says.
    """
    found: dict[tuple[str, str, str], NDArray[np.float64]] = {}
    of_test_sets: dict[str, list[ComparedRun]] = {}
    for run in runs:
        of_test_sets.setdefault(run.evaluation.test_set, []).append(run)
    metrics = _metrics(runs)
    done = 0
    for number, members in enumerate(of_test_sets.values()):
        counted: list[tuple[tuple[str, str, str], CorpusMetric, NDArray[np.float64]]] = []
        for run in members:
            for name, metric in metrics[_kind(run)].items():
                if name in run.measured and run.evaluation.sentences:
                    statistics = metric.statistics(run.evaluation.sentences)
                    _check(run, name, metric, statistics)
                    counted.append(((name, run.system, run.seed), metric, statistics))
            done += 1
            tell("count", done, len(runs))
        if counted:
            random = np.random.default_rng([seed, number])
            sums = resampled_sums([statistics for *_, statistics in counted], samples, random)
            for (key, metric, _), of_samples in zip(counted, sums, strict=True):
                found[key] = metric.scores(of_samples)
        tell("resample", number + 1, len(of_test_sets))
    return found


def _metrics(runs: Sequence[ComparedRun]) -> dict[Any, dict[str, CorpusMetric]]:
    """The metrics of each kind of run; made once, for a metric remembers words that it met."""
    classified = [row for run in runs if not run.evaluation.translates for row in run.evaluation.sentences]
    labels = sorted({row[key] for row in classified for key in ("label", "prediction")})
    return {
        _kind(run): translation_metrics(run.evaluation.signatures)
        if run.evaluation.translates
        else classification_metrics(labels)
        for run in {_kind(run): run for run in runs}.values()
    }


def _kind(run: ComparedRun) -> tuple[bool, str]:
    return run.evaluation.translates, run.evaluation.signatures.get("bleu", "")


def _check(run: ComparedRun, name: str, metric: CorpusMetric, statistics: NDArray[np.float64]) -> None:
    value = float(metric.scores(statistics.sum(axis=0, keepdims=True))[0])
    written = run.measured[name]
    if abs(value - written) > 1e-3 * max(1.0, abs(written)):
        raise ExperimentError(
            f"{run.name}: metrics.json says {name} {written:.4f}, but its sentences give {value:.4f}; evaluate it again"
        )
