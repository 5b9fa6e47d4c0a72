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
_ONE_SEED = "one seed: no verdict"


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


def short_verdicts(findings: Findings) -> dict[str, str]:
    """{system: what is known of it in a few words}, for a column of a table.

    The words that decide stand first, for a narrow column cuts the end off.
    """
    leader = _leader(findings)
    if leader is None:
        return {system.name: _ONE_SEED for system in findings.systems}

    shown = {}
    for verdict in _verdicts(_pairs_with(leader, findings), findings):
        shown[verdict.pair.second] = _against(verdict, findings)
    return {leader: _of_leader(leader, findings), **shown}


def _of_leader(leader: str, findings: Findings) -> str:
    """The short verdict on the system that all others are compared with."""
    seeds = findings.seeds_of(leader)
    shown = "one seed" if seeds == 1 else f"{seeds} seeds"
    if leader == findings.wanted.baseline:
        return f"baseline ({shown})"

    verdicts = _verdicts(_pairs_with(leader, findings), findings)
    if not verdicts:
        return "nothing to compare it with"
    tested = [verdict for verdict in verdicts if verdict.pair.is_tested]
    if not tested:
        return "others have one seed: no verdict"

    certain = [verdict for verdict in tested if verdict.is_certain]
    if not certain:
        return f"ahead, uncertain ({shown})"
    if len(certain) < len(tested):
        return f"ahead, certain against {len(certain)} of {len(tested)} ({shown})"
    # A system with one seed may have the higher value.
    best = "best of several seeds" if findings.single else "best"
    return f"{best}, certain ({shown})"


def _against(verdict: _Verdict, findings: Findings) -> str:
    """The short verdict on the second of a pair, whose first all others are compared with."""
    pair = verdict.pair
    if pair.second in findings.single:
        return _ONE_SEED
    if not pair.is_tested:
        return f"no verdict: one seed of {pair.first}"

    gap = f"{verdict.measure.shown(abs(verdict.gain))} {verdict.measure.label}"
    seeds = _seeds(replace(pair, seeds=(pair.seeds[1], pair.seeds[0])))
    if verdict.gain < 0:
        word, place = "better", f"{gap} ahead of {pair.first}"
    else:
        word, place = "worse", f"{gap} behind {pair.first}"
    if verdict.is_certain:
        return f"{word}, certain: {place} ({seeds})"
    return f"uncertain: {place} ({seeds})"


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
    leader = _leader(findings)
    assert leader is not None  # since one of them has seeds
    answered = _sentences(leader, _verdicts(_pairs_with(leader, findings), findings))
    if single:
        each = "" if len(single) == 1 else " each"
        text = f"Nothing is known about {_listed(single)}: one seed{each}."
        answered.append(Answer("unknown", text))
    return answered


def _leader(findings: Findings) -> str | None:
    """The baseline, or the best system that has seeds; None where none has."""
    single = findings.single
    if len(single) == len(findings.systems):
        return None
    if findings.wanted.baseline is not None:
        return findings.wanted.baseline
    # Systems are in the order of the ranking.
    return next(each.name for each in findings.systems if each.name not in single)


def _pairs_with(name: str, findings: Findings) -> list[Pair]:
    """The pairs of a system, each with that system first."""
    return [_from(pair, name) for pair in findings.pairs if name in (pair.first, pair.second)]


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
        nearest = min(verdicts, key=lambda verdict: abs(verdict.gain))
        return f"all {len(verdicts)} others; the nearest is {_gain(nearest)}"
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
