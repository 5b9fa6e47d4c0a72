"""What the comparison found: a mean and an interval for each system and measure, and which systems differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import ExperimentError
from attnlab.evaluation.holm import holm
from attnlab.evaluation.letter_groups import letter_groups
from attnlab.evaluation.paired_bootstrap import paired_bootstrap_p
from attnlab.evaluation.sentence_statistics import SacrebleuMetric, translation_metrics
from attnlab.evaluation.system_difference import p_of_difference
from attnlab.evaluation.system_estimate import Estimate, estimate
from attnlab.evaluation.two_level_bootstrap import SystemSample, system_sample
from attnlab.report.comparison.compared_run import ComparedRun
from attnlab.report.comparison.measures import in_order, measure_named
from attnlab.report.comparison.resampled_scores import Tell, resampled_scores
from attnlab.report.comparison.systems import System, ranked, systems_of


@dataclass(frozen=True)
class Wanted:
    """measure: what systems are ranked and tested by.
    baseline: a system that the others are tested against; None for all pairs.
    samples: of the bootstrap.
    confidence: of the intervals; 1 less it is what p is held against.
    seed: of the samples.
    """

    measure: str
    baseline: str | None
    samples: int
    confidence: float
    seed: int


@dataclass(frozen=True)
class Pair:
    """Two systems.

    difference: of the means, the first less the second.
    p: of the difference, Holm's correction over the pairs that were tested; None where nothing could be drawn again.
    p_of_sacrebleu: of its own test between the median seeds; None where it has no such metric.
    """

    first: str
    second: str
    difference: float
    p: float | None
    p_of_sacrebleu: float | None


@dataclass(frozen=True, eq=False)
class Findings:
    """systems: the best one first.
    estimates: {measure: {system: ...}}.
    letters: {measure: {system: letters}}; empty where no pair of systems could be tested.
    pairs: by the measure that was wanted; all of them, or those with the baseline.
    """

    wanted: Wanted
    systems: list[System]
    estimates: Mapping[str, Mapping[str, Estimate]]
    letters: Mapping[str, Mapping[str, str]]
    pairs: list[Pair]


def findings_of(runs: Sequence[ComparedRun], wanted: Wanted, tell: Tell) -> Findings:
    """Raises ExperimentError where the baseline is no system, or the runs are of two tasks."""
    if len({run.evaluation.translates for run in runs}) > 1:
        raise ExperimentError("translations and classifications cannot be compared; name runs of one task")
    systems = systems_of(runs)
    names = [system.name for system in systems]
    if wanted.baseline is not None and wanted.baseline not in names:
        raise ExperimentError(f"baseline must be null or one of {', '.join(names)}; got {wanted.baseline!r}")
    scores = resampled_scores(runs, wanted.samples, wanted.seed, tell)
    estimates: dict[str, dict[str, Estimate]] = {}
    letters: dict[str, dict[str, str]] = {}
    pairs: list[Pair] = []
    for name in in_order({name for run in runs for name in run.measured}):
        measure = measure_named(name)
        best_first = ranked(systems, measure)
        samples = {each.name: _sample(each, name, scores, wanted) for each in best_first}
        estimates[name] = {
            system: estimate(sample, wanted.confidence, measure.least, measure.most)
            for system, sample in samples.items()
        }
        tested = _tested(samples, list(combinations(samples, 2)))
        letters[name] = _letters(list(samples), tested, 1 - wanted.confidence)
        if name == wanted.measure:
            pairs = _pairs(best_first, samples, tested, wanted, tell)
    return Findings(wanted, ranked(systems, measure_named(wanted.measure)), estimates, letters, pairs)


def _sample(
    system: System, measure: str, scores: Mapping[tuple[str, str, str], NDArray[np.float64]], wanted: Wanted
) -> SystemSample:
    runs = [run for run in system.runs if measure in run.measured]
    drawn = [scores.get((measure, run.system, run.seed)) for run in runs]
    resampled = [each for each in drawn if each is not None]
    complete = len(resampled) == len(runs)
    return system_sample(
        [run.measured[measure] for run in runs],
        np.stack(resampled) if complete else None,
        min(len(run.evaluation.sentences) for run in runs) if complete else None,
        wanted.samples,
        # Apart from the sentences' stream, and each system's from the others'; the same seeds for all measures.
        np.random.default_rng([wanted.seed, system.number, 1]),
    )


def _tested(samples: Mapping[str, SystemSample], pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """{pair: p after Holm's correction}, of those pairs that can be tested."""
    found = {(one, other): p_of_difference(samples[one], samples[other]) for one, other in pairs}
    known = {pair: p for pair, p in found.items() if p is not None}
    return dict(zip(known, holm(list(known.values())), strict=True))


def _letters(names: list[str], tested: Mapping[tuple[str, str], float], threshold: float) -> dict[str, str]:
    if not tested:
        return {}
    apart = [(names.index(one), names.index(other)) for (one, other), p in tested.items() if p < threshold]
    return dict(zip(names, letter_groups(len(names), apart), strict=True))


def _pairs(
    best_first: list[System],
    samples: Mapping[str, SystemSample],
    all_tested: Mapping[tuple[str, str], float],
    wanted: Wanted,
    tell: Tell,
) -> list[Pair]:
    names = [system.name for system in best_first]
    if wanted.baseline is None:
        chosen, tested = list(combinations(names, 2)), all_tested
    else:
        chosen = [(name, wanted.baseline) for name in names if name != wanted.baseline]
        tested = _tested(samples, chosen)
    of_sacrebleu = _sacrebleu(best_first, chosen, wanted, tell)
    means = {name: float(samples[name].values.mean()) for name in names}
    return [
        Pair(one, other, means[one] - means[other], tested.get((one, other)), of_sacrebleu.get((one, other)))
        for one, other in chosen
    ]


def _sacrebleu(
    systems: Sequence[System], pairs: Sequence[tuple[str, str]], wanted: Wanted, tell: Tell
) -> dict[tuple[str, str], float]:
    """{pair: p of sacrebleu's test between their median seeds}, where both translated the same sentences."""
    medians = {system.name: system.median_run(wanted.measure).evaluation for system in systems}
    found: dict[tuple[str, str], float] = {}
    seconds = list(dict.fromkeys(other for _, other in pairs))
    for done, second in enumerate(seconds, start=1):
        base = medians[second]
        metric = translation_metrics(base.signatures).get(wanted.measure) if base.translates else None
        firsts = [one for one, other in pairs if other == second and medians[one].test_set == base.test_set]
        if isinstance(metric, SacrebleuMetric) and firsts and base.sentences:
            ours, *theirs = (
                [row["hypothesis"] for row in each.sentences] for each in (base, *(medians[one] for one in firsts))
            )
            references = [row["reference"] for row in base.sentences]
            p_values = paired_bootstrap_p(metric.metric, ours, theirs, references, wanted.samples)
            found.update({(one, second): p for one, p in zip(firsts, p_values, strict=True)})
        tell("test", done, len(seconds))
    return found
