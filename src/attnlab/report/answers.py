"""Answers of a comparison, one sentence a question, by a rule that stands beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from attnlab.evaluation.measures import Measure
from attnlab.report.factors import Factor, Factors, Interaction
from attnlab.report.findings import Findings, Pair

# Of systems that are named in one sentence; the table of pairs has the others.
_MOST_NAMED = 3


@dataclass(frozen=True)
class Answer:
    """kind: `certain` where the rule finds a difference, `open` where it finds none, `unknown`
    where there are too few seeds for a verdict.
    """

    kind: Literal["certain", "open", "unknown"]
    text: str


@dataclass(frozen=True)
class _Verdict:
    """A pair, read from the side of the first.

    gain: how much better the first is; below 0 where it is worse.
    """

    pair: Pair
    measure: Measure
    threshold: float

    @property
    def gain(self) -> float:
        return self.measure.sign * self.pair.difference

    @property
    def is_certain(self) -> bool:
        return self.pair.p is not None and self.pair.p < self.threshold

    @property
    def range_shown(self) -> str:
        """The interval of the gain in numbers, turned round where the first is the worse one."""
        assert self.pair.low is not None
        assert self.pair.high is not None
        low, high = sorted([self.measure.sign * self.pair.low, self.measure.sign * self.pair.high])
        if self.is_certain and self.gain < 0:
            low, high = -high, -low
        signed = not self.is_certain
        return f"{self.measure.shown(low, signed)} to {self.measure.shown(high, signed)}"

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval of this pair alone does."""
        assert self.pair.low is not None
        assert self.pair.high is not None
        return self.pair.low > 0 or self.pair.high < 0


def answers(findings: Findings, factors: Factors) -> list[Answer]:
    """The answers: those that are certain first, each kind in the order of importance."""
    found = verdict(findings)
    if len(findings.single) == len(findings.systems):
        return found

    for factor in factors.factors:
        found += _of_factor(factor, findings)
    if factors.interactions:
        found.append(Answer("certain", interaction_sentence(factors.interactions[0], findings)))
    return sorted(found, key=lambda answer: answer.kind != "certain")


def verdict(findings: Findings) -> list[Answer]:
    """The answer to the first question, which system is better."""
    num_systems = len(findings.systems)
    if num_systems == 1:
        return [Answer("unknown", "There is one system, and nothing to compare it with.")]
    if len(findings.single) == num_systems:
        return [_no_verdict(findings)]
    return _of_systems(findings)


def rule(findings: Findings, factors: Factors) -> str:
    """When a difference is called certain."""
    confidence, threshold = findings.wanted.confidence, findings.wanted.threshold
    tested = sum(pair.is_tested for pair in findings.pairs)
    if tested == 0:
        return (
            "A verdict needs two seeds or more of each system: with one, how far another seed "
            "would move the result is unknown."
        )
    corrected = "" if tested == 1 else f", corrected by Holm's method over {tested} pairs,"
    of_factors = ""
    if factors.factors:
        of_factors = " For the values of a factor, the correction is over that factor's own pairs."
    return (
        f"A system is called better where the {100 * confidence:g} % interval of the difference "
        f"excludes 0 and its p{corrected} is below {threshold:.2g}.{of_factors} Intervals are over "
        "seeds and, where the metric allows it, test sentences. A system with one seed gets no "
        "verdict."
    )


def _no_verdict(findings: Findings) -> Answer:
    """What one seed of each system allows to say."""
    return Answer(
        "unknown",
        f"Nothing is known about which of the {len(findings.systems)} systems is better: each has "
        f"one seed. {_best_single_run(findings)}",
    )


def _best_single_run(findings: Findings) -> str:
    """A sentence; runs whose values look alike share the first place."""
    measure = findings.measure
    shown = {}
    for system in findings.systems:
        mean = findings.estimate_of(system.name).mean
        shown[system.name] = f"{measure.shown(mean)} {measure.label}"

    best = next(iter(shown.values()))
    leaders = [name for name, value in shown.items() if value == best]
    if len(leaders) == len(shown):
        return f"All runs have {best}."
    if len(leaders) > 1:
        return f"{len(leaders)} runs share the best value, {best}."
    return f"The best single run is {leaders[0]} with {best}."


def _of_systems(findings: Findings) -> list[Answer]:
    """The best system that has seeds against all others, or each system against the baseline."""
    single = findings.single
    leader = findings.wanted.baseline
    if leader is None:
        # Systems are in the order of the ranking.
        leader = next(each.name for each in findings.systems if each.name not in single)
    pairs = [_from(pair, leader) for pair in findings.pairs if leader in (pair.first, pair.second)]
    answered = _sentences(leader, _verdicts(pairs, findings))
    if single:
        each = "" if len(single) == 1 else " each"
        text = f"Nothing is known about {_listed(single)}: one seed{each}."
        answered.append(Answer("unknown", text))
    return answered


def _from(pair: Pair, name: str) -> Pair:
    """The pair with this system first."""
    if pair.first == name:
        return pair
    assert pair.second == name
    one, other = pair.seeds
    return replace(
        pair,
        first=name,
        second=pair.first,
        difference=-pair.difference,
        low=None if pair.high is None else -pair.high,
        high=None if pair.low is None else -pair.low,
        seeds=(other, one),
    )


def _verdicts(pairs: Sequence[Pair], findings: Findings) -> list[_Verdict]:
    measure, threshold = findings.measure, findings.wanted.threshold
    return [_Verdict(pair, measure, threshold) for pair in pairs]


def _sentences(name: str, verdicts: Sequence[_Verdict], prefix: str = "") -> list[Answer]:
    """What is known of a system, or a value of a factor, against others."""
    known = [verdict for verdict in verdicts if verdict.pair.is_tested]
    better = [verdict for verdict in known if verdict.is_certain and verdict.gain > 0]
    worse = [verdict for verdict in known if verdict.is_certain and verdict.gain < 0]
    undecided = [verdict for verdict in known if not verdict.is_certain]
    # The largest gap is what a reader asks for first.
    undecided.sort(key=lambda verdict: -abs(verdict.gain))

    found = []
    if better:
        gains = _by_how_much(better, is_of_all=len(better) == len(verdicts))
        found.append(Answer("certain", f"{prefix}{name} is better than {gains}."))
    if worse:
        gains = _by_how_much(worse, is_of_all=len(worse) == len(verdicts))
        found.append(Answer("certain", f"{prefix}{name} is worse than {gains}."))
    if undecided:
        shown = [_undecided(verdict) for verdict in undecided[:_MOST_NAMED]]
        if len(undecided) > _MOST_NAMED:
            shown.append(f"{len(undecided) - _MOST_NAMED} more")
        is_ahead = not better and all(verdict.gain > 0 for verdict in known)
        if is_ahead:
            text = f"{prefix}{name} is ahead, but no difference is certain: to {_listed(shown)}."
        else:
            text = f"{prefix}No difference is certain between {name} and {_listed(shown)}."
        found.append(Answer("open", text))
    return found


def _by_how_much(verdicts: Sequence[_Verdict], is_of_all: bool) -> str:
    """`dot by 8.70 BLEU (2.10 to 15.30, 5 seeds)` for each; of many, for the first.

    is_of_all: whether nothing else was compared.
    """
    if len(verdicts) <= _MOST_NAMED:
        return _listed([_gain(verdict) for verdict in verdicts])
    if is_of_all:
        return f"all {len(verdicts)} others; the nearest is {_gain(verdicts[0])}"
    named = [_gain(verdict) for verdict in verdicts[:_MOST_NAMED]]
    return _listed([*named, f"{len(verdicts) - _MOST_NAMED} more"])


def _gain(verdict: _Verdict) -> str:
    gain = f"{verdict.measure.shown(abs(verdict.gain))} {verdict.measure.label}"
    seeds = _seeds(verdict.pair)
    return f"{verdict.pair.second} by {gain} ({verdict.range_shown}, {seeds})"


def _undecided(verdict: _Verdict) -> str:
    gain = verdict.measure.shown(verdict.gain, signed=True)
    details = [verdict.range_shown, _seeds(verdict.pair)]
    if verdict.excludes_zero:
        assert verdict.pair.p is not None
        details.append(f"p {verdict.pair.p:.2f} after the correction")
    unit = verdict.measure.label
    return f"{verdict.pair.second} ({gain} {unit}; {', '.join(details)})"


def _seeds(pair: Pair) -> str:
    one, other = pair.seeds
    return f"{one} seeds" if one == other else f"{one} and {other} seeds"


def _listed(texts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


def _of_factor(factor: Factor, findings: Findings) -> list[Answer]:
    """The best value of a factor against its other values."""
    if not factor.pairs:
        return []
    best = factor.levels[0].value
    pairs = [pair for pair in factor.pairs if pair.first == best]
    prefix = f"{factor.name}, on average over {_listed(factor.others)}: "
    return _sentences(best, _verdicts(pairs, findings), prefix)


def interaction_sentence(interaction: Interaction, findings: Findings) -> str:
    """`The gain of dot over general depends on teacher forcing: ...`."""
    measure = findings.measure
    first, second = interaction.first, interaction.second
    one, another = interaction.differences
    gain, other_gain = (measure.sign * each for each in interaction.differences.values())
    low, high = sorted([measure.sign * interaction.low, measure.sign * interaction.high])

    # The value that gains over the other one stands first.
    if gain + other_gain < 0:
        first, second = second, first
        gain, other_gain = -gain, -other_gain
        low, high = -high, -low
    # So does the larger of the two gains.
    if gain < other_gain:
        one, another = another, one
        gain, other_gain = other_gain, gain
        low, high = -high, -low

    change = measure.shown(gain - other_gain)
    return (
        f"The gain of {first} over {second} depends on {interaction.other}: "
        f"{measure.shown(gain, signed=True)} {measure.label} with {one}, "
        f"{measure.shown(other_gain, signed=True)} with {another} "
        f"(change {change}, {measure.shown(low)} to {measure.shown(high)})."
    )
