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
from attnlab.evaluation.measures import Measures
from attnlab.evaluation.significance import (
    Estimate,
    SystemSample,
    contrast,
    estimate,
    holm,
    letter_groups,
    p_of_difference,
    resampled_sums,
    system_sample,
)
from attnlab.progress import Progress
from attnlab.report.compared_runs import (
    ComparedRun,
    System,
    measures_of,
    ranked,
    systems_of,
)


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


def findings_of(runs: Sequence[ComparedRun], wanted: Wanted, progress: Progress) -> Findings:
    """Compare runs; raises ExperimentError for an unknown baseline, or runs of two tasks."""
    tasks = sorted({run.task for run in runs})
    if len(tasks) > 1:
        raise ExperimentError(
            f"runs of {' and '.join(tasks)} cannot be compared; name runs of one task"
        )
    measures = measures_of(runs)
    systems = systems_of(runs)
    names = [system.name for system in systems]
    if wanted.baseline is not None and wanted.baseline not in names:
        raise ExperimentError(
            f"baseline must be null or one of {', '.join(names)}; got {wanted.baseline!r}"
        )
    scores, sentence_scores = resampled_scores(runs, wanted.samples, wanted.seed, progress)
    estimates: dict[str, dict[str, Estimate]] = {}
    letters: dict[str, dict[str, str]] = {}
    pairs: list[Pair] = []
    samples_of_wanted: dict[str, SystemSample] = {}
    for name in measures.in_order({name for run in runs for name in run.measured}):
        measure = measures.named(name)
        best_first = ranked(systems, measure)
        samples = {each.name: _sample(each, name, scores, wanted) for each in best_first}
        estimates[name] = {
            system: estimate(sample, wanted.confidence, measure.least, measure.most)
            for system, sample in samples.items()
        }
        tested = _tested(samples, list(combinations(samples, 2)))
        letters[name] = _letters(list(samples), tested, 1 - wanted.confidence)
        if name == wanted.measure:
            samples_of_wanted = samples
            pairs = _pairs(samples, tested, wanted)
    best_first = ranked(systems, measures.named(wanted.measure))
    return Findings(
        wanted,
        measures,
        best_first,
        estimates,
        letters,
        pairs,
        samples_of_wanted,
        sentence_scores,
    )


def _sample(
    system: System,
    measure: str,
    scores: Mapping[tuple[str, str, str], NDArray[np.float64]],
    wanted: Wanted,
) -> SystemSample:
    runs = [run for run in system.runs if measure in run.measured]
    values = [run.measured[measure] for run in runs]
    # A stream for each system, apart from that of the sentences; the same for all measures.
    random = np.random.default_rng([wanted.seed, system.number, 1])

    resampled = []
    for run in runs:
        of_run = scores.get((measure, run.system, run.seed))
        if of_run is None:  # the measure does not come from sentences
            return system_sample(values, None, None, wanted.samples, random)
        resampled.append(of_run)
    sentences = min(len(run.evaluation.sentences) for run in runs)
    return system_sample(values, np.stack(resampled), sentences, wanted.samples, random)


def _tested(
    samples: Mapping[str, SystemSample], pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """{pair: p after Holm's correction} of the pairs that can be tested.

    A system with one seed is not tested: how far another seed would move it is unknown.
    """
    found = {}
    for one, other in pairs:
        if min(samples[one].seeds, samples[other].seeds) == 1:
            continue
        p = p_of_difference(samples[one], samples[other])
        if p is not None:
            found[one, other] = p
    return dict(zip(found, holm(list(found.values())), strict=True))


def _letters(
    names: list[str], tested: Mapping[tuple[str, str], float], threshold: float
) -> dict[str, str]:
    if not tested:
        return {}
    in_a_test = {name for pair in tested for name in pair}
    names = [name for name in names if name in in_a_test]
    different = [pair for pair, p in tested.items() if p < threshold]
    apart = [(names.index(one), names.index(other)) for one, other in different]
    return dict(zip(names, letter_groups(len(names), apart), strict=True))


def _pairs(
    samples: Mapping[str, SystemSample], tested: Mapping[tuple[str, str], float], wanted: Wanted
) -> list[Pair]:
    chosen = list(combinations(samples, 2))
    if wanted.baseline is not None:
        chosen = [(name, wanted.baseline) for name in samples if name != wanted.baseline]
        tested = _tested(samples, chosen)

    pairs = []
    for one, other in chosen:
        both = [samples[one], samples[other]]
        means = [float(sample.values.mean()) for sample in both]
        found = contrast(both, [1, -1], wanted.confidence)
        pair = Pair(
            one,
            other,
            difference=means[0] - means[1],
            low=None if found is None else found.low,
            high=None if found is None else found.high,
            p=tested.get((one, other)),
            seeds=(both[0].seeds, both[1].seeds),
        )
        pairs.append(pair)
    return pairs


def resampled_scores(
    runs: Sequence[ComparedRun], samples: int, seed: int, progress: Progress
) -> tuple[
    dict[tuple[str, str, str], NDArray[np.float64]], dict[tuple[str, str], NDArray[np.float64]]
]:
    """The metrics that follow from the sentences of a run, on resampled test sets.

    Returns {(metric, system, seed of the run): (B,)}, and {(system, seed): (N,)}, the quality of
    each sentence. Runs with the same test set are measured on the same samples of it; each test set
    has samples of its own.

    Raises:
        ExperimentError: the sentences of a run give another metric than its metrics.json says.
    """
    found: dict[tuple[str, str, str], NDArray[np.float64]] = {}
    of_sentences: dict[tuple[str, str], NDArray[np.float64]] = {}
    of_test_sets: dict[str, list[ComparedRun]] = {}
    for run in runs:
        of_test_sets.setdefault(run.test_set, []).append(run)
    of_runs = runs[0].section.metrics_of([run.evaluation for run in runs])
    metrics = {
        id(run): {**of_run, **run.resampled} for run, of_run in zip(runs, of_runs, strict=True)
    }
    done = 0
    for number, members in enumerate(of_test_sets.values()):
        counted: list[tuple[tuple[str, str, str], CorpusMetric, NDArray[np.float64]]] = []
        for run in members:
            for name, metric in metrics[id(run)].items():
                if name in run.measured:
                    statistics = metric.statistics(run.evaluation.sentences)
                    _check(run, name, metric, statistics)
                    counted.append(((name, run.system, run.seed), metric, statistics))
                    if name == run.section.sentence_metric:
                        of_sentences[run.system, run.seed] = metric.scores(statistics)
            done += 1
            progress("count", done, len(runs))
        random = np.random.default_rng([seed, number])
        sums = resampled_sums([statistics for *_, statistics in counted], samples, random)
        for (key, metric, _), of_samples in zip(counted, sums, strict=True):
            found[key] = metric.scores(of_samples)
        progress("resample", number + 1, len(of_test_sets))
    return found, of_sentences


def _check(
    run: ComparedRun, name: str, metric: CorpusMetric, statistics: NDArray[np.float64]
) -> None:
    value = float(metric.scores(statistics.sum(axis=0, keepdims=True))[0])
    written = run.measured[name]
    if abs(value - written) > 1e-3 * max(1.0, abs(written)):
        raise ExperimentError(
            f"{run.name}: metrics.json says {name} {written:.4f}, but its sentences give "
            f"{value:.4f}; evaluate it again"
        )
