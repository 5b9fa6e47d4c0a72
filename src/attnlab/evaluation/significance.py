"""Tests of the difference between systems: p values, Holm's correction, and groups in letters."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result
from scipy.special import stdtr  # type: ignore[import-untyped]

from attnlab.evaluation.two_level_bootstrap import SystemSample


def p_of_difference(first: SystemSample, second: SystemSample) -> float | None:
    """The two-sided p of the difference between two means over seeds; None where nothing can be resampled.

    The standard error is the standard deviation of the difference over the two-level bootstrap: seeds drawn for each
    system by itself, sentences for both alike. (Systems tested on different sentences have these drawn separately.) The
    difference in standard errors is compared with Student's t, whose degrees of freedom follow from the parts of the
    variance (Satterthwaite 1946, as in Welch's test): that of the seeds, which are few, and that of the sentences.

    Counting the samples on the other side of zero would be wrong: of two equal systems with two seeds each, both seeds
    of one beat both seeds of the other in one of three cases.
    """
    sentences = None if first.sentences is None or second.sentences is None else min(first.sentences, second.sentences)
    if first.seeds == second.seeds == 1 and sentences is None:
        return None
    difference = float(first.values.mean() - second.values.mean())
    apart = first.by_sentences + first.by_seeds - second.by_sentences - second.by_seeds  # (B,)
    parts = _of_the_seeds(first, second)
    unseen = sum(part for part, _ in parts) - sum(_of_the_mean(each) for each in (first, second))
    variance = float(apart.var(ddof=1)) + unseen
    scale = max(abs(first.values).max(), abs(second.values).max())
    if variance <= (1e-12 * scale) ** 2:  # no variance except rounding
        return 1.0 if abs(difference) <= 1e-12 * scale else 0.0
    if sentences is not None:
        of_sentences = max(0.0, variance - sum(part for part, _ in parts))
        parts.append((of_sentences, max(1, sentences - 1)))
    weights = sum(part**2 / degrees for part, degrees in parts)
    degrees = sum(part for part, _ in parts) ** 2 / weights
    return float(2 * stdtr(degrees, -abs(difference) / np.sqrt(variance)))


def _of_the_seeds(first: SystemSample, second: SystemSample) -> list[tuple[float, int]]:
    """What the seeds add to the variance of the difference, with its degrees of freedom.

    One seed shows no variance. Its system gets the variance of the other system: taking the single value as exact would
    find a difference between equal systems in one of six cases.
    """
    scattering = [each for each in (first, second) if each.seeds > 1]
    if len(scattering) == 1:
        (known,) = scattering
        of_one = float(known.values.var(ddof=1))
        return [(of_one / known.seeds + of_one, known.seeds - 1)]
    return [(_of_the_mean(each), each.seeds - 1) for each in scattering]


def _of_the_mean(sample: SystemSample) -> float:
    return float(sample.values.var(ddof=1)) / sample.seeds if sample.seeds > 1 else 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected by Holm 1979 ("A simple sequentially rejective multiple test procedure", Scandinavian Journal
    of Statistics 6), in their order.

    The smallest of m is multiplied by m, the next one by m - 1, ...; none is then less than the one before it, or more
    than 1. Rejecting what is below 0.05 rejects any true hypothesis at all with a probability of 0.05 at most.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return corrected.tolist()


_LETTERS = string.ascii_lowercase + string.ascii_uppercase


def letter_groups(count: int, apart: Iterable[tuple[int, int]]) -> list[str]:
    """The compact letter display of Piepho 2004 ("An algorithm for a letter-based representation of all-pairwise
    comparisons", Journal of Computational and Graphical Statistics 13), by his insert-and-absorb algorithm.

    Args:
        count: number of systems, the best one first: it gets an `a`.
        apart: pairs that differ significantly.

    Returns the letters of each system. Two systems share a letter exactly where their pair is not in `apart`.
    """
    groups = [frozenset(range(count))]
    for one, other in sorted({(min(pair), max(pair)) for pair in apart}):
        split: list[frozenset[int]] = []
        for group in groups:
            split += [group - {one}, group - {other}] if {one, other} <= group else [group]  # insert
        distinct = list(dict.fromkeys(split))
        groups = [group for group in distinct if not any(group < larger for larger in distinct)]  # absorb
    groups.sort(key=sorted)
    names = [_LETTERS[number] if number < len(_LETTERS) else f"({number})" for number in range(len(groups))]
    return ["".join(name for name, group in zip(names, groups, strict=True) if each in group) for each in range(count)]


def paired_bootstrap_p(
    metric: BLEU | CHRF | TER,
    baseline: Sequence[str],
    others: Sequence[Sequence[str]],
    references: Sequence[str],
    samples: int,
) -> list[float]:
    """p of sacrebleu's paired bootstrap test for each of `others` against the baseline (Koehn 2004, with the centred
    difference of MultEval, Clark et al. 2011).

    It compares two trained models, not two systems with several seeds.
    The seed of its samples is sacrebleu's (SACREBLEU_SEED, 12345). For equal scores p is 1; sacrebleu
    itself would call them significantly different.
    """
    named = [("baseline", baseline), *((str(number), texts) for number, texts in enumerate(others))]
    _, found = PairedTest(named, {"": metric}, [references], test_type="bs", n_samples=samples)()
    (results,) = (of_metric for name, of_metric in found.items() if name != "System")
    ours, *theirs = (result for result in results if isinstance(result, Result))
    p_values = []
    for result in theirs:
        assert result.p_value is not None
        p_values.append(1.0 if result.score == ours.score else float(result.p_value))
    return p_values
