"""Findings of a comparison: means with intervals, and the systems that differ.

There is a mean and an interval for each system and measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import ExperimentError
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.measures import Measure, Measures
from attnlab.evaluation.significance import (
    Contrast,
    Estimate,
    SystemSample,
    difference_of_systems,
    estimate,
    holm,
    letter_groups,
    resampled_sums,
    scores_of_samples,
    system_sample,
)
from attnlab.progress import Progress
from attnlab.report.compared_runs import ComparedRun, measured_names, measures_of
from attnlab.report.systems import System, ranked, systems_of


@dataclass(frozen=True)
class Wanted:
    """measure: ranks and tests the systems.
    baseline: the system that all others are tested against; None tests all pairs.
    samples: of the bootstrap.
    confidence: of the intervals; p values are compared with 1 - confidence.
    seed: of the samples.
    """

    measure: str
    baseline: str | None
    samples: int
    confidence: float
    seed: int

    @property
    def threshold(self) -> float:
        """A difference is certain where its p is below it."""
        return 1 - self.confidence


@dataclass(frozen=True)
class Pair:
    """Two systems, or two values of a factor.

    difference: of the means, the first less the second.
    low, high: its own interval; None where a system has one seed.
    p: of the difference, after Holm's correction over the tested pairs; None where a system has one
        seed.
    seeds: of the first and of the second.
    """

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float | None
    seeds: tuple[int, int]

    @property
    def is_tested(self) -> bool:
        return self.p is not None

    @classmethod
    def of(
        cls,
        first: str,
        second: str,
        difference: float,
        found: Contrast | None,
        p: float | None,
        seeds: tuple[int, int],
    ) -> Pair:
        """found: the difference with its interval, where a pair has one."""
        low = None if found is None else found.low
        high = None if found is None else found.high
        return cls(first, second, difference, low, high, p, seeds)


@dataclass(frozen=True, eq=False)
class Findings:
    """measures: what the pages know of them.
    systems: the best one first.
    estimates: {measure: {system: ...}}.
    letters: {measure: {system: letters}}; empty where no pair can be tested.
    pairs: tested by the wanted measure; all pairs, or those with the baseline.
    samples: {system: its samples by the wanted measure}.
    sentence_scores: {(system, seed): (N,) the quality of each sentence}, of the runs whose task
        measures sentences.
    """

    wanted: Wanted
    measures: Measures
    systems: list[System]
    estimates: Mapping[str, Mapping[str, Estimate]]
    letters: Mapping[str, Mapping[str, str]]
    pairs: list[Pair]
    samples: Mapping[str, SystemSample]
    sentence_scores: Mapping[tuple[str, str], NDArray[np.float64]]

    @property
    def measure(self) -> Measure:
        """The wanted one."""
        return self.measures.named(self.wanted.measure)

    def estimate_of(self, system: str) -> Estimate:
        """The mean of a system by the wanted measure."""
        return self.estimates[self.wanted.measure][system]

    def seeds_of(self, system: str) -> int:
        """How many seeds of a system have the wanted measure."""
        return self.samples[system].seeds

    @property
    def single(self) -> list[str]:
        """The systems with one seed, which get no verdict; in the order of the ranking."""
        return [system.name for system in self.systems if self.seeds_of(system.name) == 1]

    @property
    def has_letters(self) -> bool:
        """Whether letters group the systems of the ranking: some pair could be tested."""
        return bool(self.letters[self.wanted.measure])


def findings_of(runs: Sequence[ComparedRun], wanted: Wanted, progress: Progress) -> Findings:
    """Compare runs; raises ExperimentError for an unknown baseline, or runs of two tasks."""
    measures = measures_of(runs)
    systems = systems_of(runs)
    _check_comparable(runs, systems, wanted)
    scores = sentence_scores(runs, wanted.samples, wanted.seed, progress)

    estimates: dict[str, dict[str, Estimate]] = {}
    letters: dict[str, dict[str, str]] = {}
    pairs: list[Pair] = []
    samples_of_wanted: dict[str, SystemSample] = {}
    for name in measured_names(runs):
        measure = measures.named(name)
        samples = {}
        for system in ranked(systems, measure):
            samples[system.name] = _sample(system, name, scores, wanted)
        estimates[name] = _estimates(samples, measure, wanted.confidence)

        differences = _differences(samples, list(combinations(samples, 2)), wanted.confidence)
        p_values = _corrected(differences)
        letters[name] = _letters(list(samples), p_values, wanted.threshold)
        if name == wanted.measure:
            samples_of_wanted = samples
            pairs = _pairs(samples, differences, wanted)

    return Findings(
        wanted=wanted,
        measures=measures,
        systems=ranked(systems, measures.named(wanted.measure)),
        estimates=estimates,
        letters=letters,
        pairs=pairs,
        samples=samples_of_wanted,
        sentence_scores=scores.of_sentences,
    )


def _check_comparable(
    runs: Sequence[ComparedRun], systems: Sequence[System], wanted: Wanted
) -> None:
    tasks = sorted({run.task for run in runs})
    if len(tasks) > 1:
        raise ExperimentError(
            f"runs of {' and '.join(tasks)} cannot be compared; name runs of one task"
        )
    names = [system.name for system in systems]
    if wanted.baseline is not None and wanted.baseline not in names:
        raise ExperimentError(
            f"baseline must be null or one of {', '.join(names)}; got {wanted.baseline!r}"
        )


def _estimates(
    samples: Mapping[str, SystemSample], measure: Measure, confidence: float
) -> dict[str, Estimate]:
    """The mean of each system with its interval."""
    estimates = {}
    for system, sample in samples.items():
        estimates[system] = estimate(sample, confidence, measure.least, measure.most)
    return estimates


def _sample(system: System, measure: str, scores: SentenceScores, wanted: Wanted) -> SystemSample:
    """The seeds of a system by a measure, resampled."""
    runs = [run for run in system.runs if measure in run.measured]
    values = [run.measured[measure] for run in runs]
    # A stream for each system, apart from that of the sentences; the same for all measures.
    random = np.random.default_rng([wanted.seed, system.number, 1])

    resampled = []
    for run in runs:
        of_run = scores.resampled.get((measure, run.system, run.seed))
        if of_run is None:  # the measure does not come from sentences
            return system_sample(values, None, None, wanted.samples, random)
        resampled.append(of_run)
    sentences = min(len(run.evaluation.sentences) for run in runs)
    return system_sample(values, np.stack(resampled), sentences, wanted.samples, random)


def _differences(
    samples: Mapping[str, SystemSample], pairs: Sequence[tuple[str, str]], confidence: float
) -> dict[tuple[str, str], Contrast]:
    """{pair: its difference} of the pairs that can be tested.

    A system with one seed is not tested: how far another seed would move it is unknown.
    """
    differences = {}
    for one, other in pairs:
        found = difference_of_systems(samples[one], samples[other], confidence)
        if found is not None:
            differences[one, other] = found
    return differences


def _corrected(differences: Mapping[tuple[str, str], Contrast]) -> dict[tuple[str, str], float]:
    """{pair: p after Holm's correction over all of them}."""
    p_values = [found.p for found in differences.values()]
    return dict(zip(differences, holm(p_values), strict=True))


def _letters(
    best_first: Sequence[str], p_values: Mapping[tuple[str, str], float], threshold: float
) -> dict[str, str]:
    """The letters of the systems that took part in a test; those that share one do not differ."""
    tested: set[str] = set()
    for pair in p_values:
        tested.update(pair)
    names = [name for name in best_first if name in tested]
    if not names:
        return {}

    place = {name: number for number, name in enumerate(names)}
    apart = []
    for (one, other), p in p_values.items():
        if p < threshold:
            apart.append((place[one], place[other]))
    letters = letter_groups(len(names), apart)
    return dict(zip(names, letters, strict=True))


def _pairs(
    samples: Mapping[str, SystemSample],
    differences: Mapping[tuple[str, str], Contrast],
    wanted: Wanted,
) -> list[Pair]:
    """All pairs, the better one first, or each system with the baseline."""
    chosen = list(combinations(samples, 2))
    if wanted.baseline is not None:
        chosen = [(name, wanted.baseline) for name in samples if name != wanted.baseline]
        differences = _differences(samples, chosen, wanted.confidence)
    p_values = _corrected(differences)

    pairs = []
    for one, other in chosen:
        ours, theirs = samples[one], samples[other]
        difference = float(ours.values.mean()) - float(theirs.values.mean())
        found = differences.get((one, other))
        p = p_values.get((one, other))
        pairs.append(Pair.of(one, other, difference, found, p, (ours.seeds, theirs.seeds)))
    return pairs


@dataclass(frozen=True, eq=False)
class SentenceScores:
    """The metrics that follow from the sentences of runs.

    resampled: {(metric, system, seed of the run): (B,)}, on resampled test sets.
    of_sentences: {(system, seed): (N,)}, the quality of each sentence.
    """

    resampled: dict[tuple[str, str, str], NDArray[np.float64]]
    of_sentences: dict[tuple[str, str], NDArray[np.float64]]


def sentence_scores(
    runs: Sequence[ComparedRun], samples: int, seed: int, progress: Progress
) -> SentenceScores:
    """The metrics that follow from the sentences of runs, on so many samples of the test sets.

    Runs with the same test set are measured on the same samples of it; each test set has samples of
    its own.

    Raises:
        ExperimentError: the sentences of a run give another metric than its metrics.json says.
    """
    by_test_set: dict[str, list[ComparedRun]] = {}
    for run in runs:
        by_test_set.setdefault(run.test_set, []).append(run)
    # Asked for all runs together: they may share what a metric computes.
    metrics_of_runs = runs[0].section.metrics_of([run.evaluation for run in runs])
    metrics_by_run = {id(run): found for run, found in zip(runs, metrics_of_runs, strict=True)}

    scores = SentenceScores({}, {})
    done = 0
    for number, members in enumerate(by_test_set.values()):
        counted: list[_Counted] = []
        for run in members:
            counted += _counted(run, {**metrics_by_run[id(run)], **run.resampled})
            done += 1
            progress("count", done, len(runs))

        random = np.random.default_rng([seed, number])
        sums = resampled_sums([each.statistics for each in counted], samples, random)
        for each, of_samples in zip(counted, sums, strict=True):
            run = each.run
            of_run = scores_of_samples(each.metric, of_samples)
            scores.resampled[each.name, run.system, run.seed] = of_run
            if each.name == run.section.sentence_metric:
                of_sentences = each.metric.scores(each.statistics)
                scores.of_sentences[run.system, run.seed] = of_sentences
        progress("resample", number + 1, len(by_test_set))
    return scores


@dataclass(frozen=True, eq=False)
class _Counted:
    """A metric of a run. statistics: (N, K), what it counts in each sentence."""

    run: ComparedRun
    name: str
    metric: CorpusMetric
    statistics: NDArray[np.float64]


def _counted(run: ComparedRun, metrics: Mapping[str, CorpusMetric]) -> list[_Counted]:
    """Those of the metrics that the run was measured by."""
    counted = []
    for name, metric in metrics.items():
        if name in run.measured:
            found = _Counted(run, name, metric, metric.statistics(run.evaluation.sentences))
            _check(found)
            counted.append(found)
    return counted


def _check(counted: _Counted) -> None:
    """Raise ExperimentError where the sentences of a run give another metric than is written."""
    total = counted.statistics.sum(axis=0, keepdims=True)  # (1, K)
    value = float(counted.metric.scores(total)[0])
    written = counted.run.measured[counted.name]
    tolerance = 1e-3 * max(1.0, abs(written))
    if abs(value - written) > tolerance:
        raise ExperimentError(
            f"{counted.run.name}: metrics.json says {counted.name} {written:.4f}, but its "
            f"sentences give {value:.4f}; evaluate it again"
        )
