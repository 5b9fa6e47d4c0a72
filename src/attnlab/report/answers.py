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
    def is_known(self) -> bool:
        return self.pair.p is not None

    @property
    def is_certain(self) -> bool:
        return self.pair.p is not None and self.pair.p < self.threshold

    @property
    def range_shown(self) -> str:
        """The interval of the gain in numbers, turned round where the first is the worse one."""
        assert self.pair.low is not None
        assert self.pair.high is not None
        ends = sorted([self.measure.sign * self.pair.low, self.measure.sign * self.pair.high])
        signed = not self.is_certain
        if self.is_certain and self.gain < 0:
            ends = [-ends[1], -ends[0]]
        return " to ".join(self.measure.shown(end, signed=signed) for end in ends)

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval of this pair alone does."""
        assert self.pair.low is not None
        assert self.pair.high is not None
        return self.pair.low > 0 or self.pair.high < 0


def answers(findings: Findings, factors: Factors) -> list[Answer]:
    """The answers, the most important one first."""
    systems = findings.systems
    if len(systems) == 1:
        return [Answer("unknown", "There is one system, and nothing to compare it with.")]
    if all(sample.seeds == 1 for sample in findings.samples.values()):
        return [_no_verdict(findings)]

    found = _of_systems(findings)
    for factor in factors.factors:
        found += _of_factor(factor, findings)
    if factors.interactions:
        found.append(Answer("certain", interaction_sentence(factors.interactions[0], findings)))
    return found


def rule(findings: Findings) -> str:
    """When a difference is called certain."""
    confidence = findings.wanted.confidence
    tested = sum(pair.p is not None for pair in findings.pairs)
    if tested == 0:
        return (
            "A verdict needs two seeds or more of each system: with one, how far another seed "
            "would move the result is unknown."
        )
    corrected = "" if tested == 1 else f", corrected by Holm's method over {tested} pairs,"
    return (
        f"A system is called better where the {100 * confidence:g} % interval of the difference "
        f"excludes 0 and its p{corrected} is below {1 - confidence:.2g}. Intervals are over seeds "
        "and, where the metric allows it, test sentences. A system with one seed gets no verdict."
    )


def _no_verdict(findings: Findings) -> Answer:
    measure = findings.measures.named(findings.wanted.measure)
    means = [findings.estimates[measure.name][each.name].mean for each in findings.systems]
    shown = [f"{measure.shown(mean)} {measure.label}" for mean in means]
    leaders = [
        each.name for each, text in zip(findings.systems, shown, strict=True) if text == shown[0]
    ]
    best = f"The best single run is {leaders[0]} with {shown[0]}."
    if len(leaders) == len(shown):
        best = f"All runs have {shown[0]}."
    elif len(leaders) > 1:
        best = f"{len(leaders)} runs share the best value, {shown[0]}."
    return Answer(
        "unknown",
        f"Nothing is known about which of the {len(shown)} systems is better: each has one seed. "
        f"{best}",
    )


def _of_systems(findings: Findings) -> list[Answer]:
    """The best system that has seeds against all others, or each system against the baseline."""
    seeds = {name: sample.seeds for name, sample in findings.samples.items()}
    single = [system.name for system in findings.systems if seeds[system.name] == 1]
    baseline = findings.wanted.baseline
    if baseline is not None:
        verdicts = _verdicts([_from(pair, baseline) for pair in findings.pairs], findings)
        answered = _sentences(baseline, verdicts)
    else:
        # Pairs are in the order of the ranking, the better one first.
        best = next(system.name for system in findings.systems if seeds[system.name] > 1)
        pairs = [pair for pair in findings.pairs if best in (pair.first, pair.second)]
        answered = _sentences(best, _verdicts([_from(pair, best) for pair in pairs], findings))
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
    measure = findings.measures.named(findings.wanted.measure)
    return [_Verdict(pair, measure, 1 - findings.wanted.confidence) for pair in pairs]


def _sentences(name: str, verdicts: Sequence[_Verdict], prefix: str = "") -> list[Answer]:
    """What is known of a system, or a value of a factor, against others."""
    known = [verdict for verdict in verdicts if verdict.is_known]
    better = [verdict for verdict in known if verdict.is_certain and verdict.gain > 0]
    worse = [verdict for verdict in known if verdict.is_certain and verdict.gain < 0]
    undecided = [verdict for verdict in known if not verdict.is_certain]

    found = []
    for word, certain in (("better", better), ("worse", worse)):
        if certain:
            is_of_all = len(certain) == len(verdicts)
            text = f"{prefix}{name} is {word} than {_by_how_much(certain, is_of_all)}."
            found.append(Answer("certain", text))
    if undecided:
        shown = [_undecided(verdict) for verdict in undecided[:_MOST_NAMED]]
        if len(undecided) > _MOST_NAMED:
            shown.append(f"{len(undecided) - _MOST_NAMED} more")
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
    """`The gain of dot over general depends on teacher_forcing: ...`."""
    measure = findings.measures.named(findings.wanted.measure)
    gains = {}
    for value, difference in interaction.differences.items():
        gains[value] = measure.sign * difference
    first, second = interaction.first, interaction.second
    ends = sorted([measure.sign * interaction.low, measure.sign * interaction.high])
    if sum(gains.values()) < 0:
        first, second = second, first
        gains = {value: -gain for value, gain in gains.items()}
        ends = [-ends[1], -ends[0]]

    # The larger gain first.
    one, another = gains
    if gains[one] < gains[another]:
        one, another = another, one
        ends = [-ends[1], -ends[0]]
    change = measure.shown(gains[one] - gains[another])
    interval = " to ".join(measure.shown(end) for end in ends)
    return (
        f"The gain of {first} over {second} depends on {interaction.other}: "
        f"{measure.shown(gains[one], signed=True)} {measure.label} with {one}, "
        f"{measure.shown(gains[another], signed=True)} with {another} "
        f"(change {change}, {interval})."
    )
