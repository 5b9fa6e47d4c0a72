"""Sentences on which the compared systems disagree most, with what each made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.report.compared_runs import ComparedRun, System
from attnlab.report.findings import Findings


@dataclass(frozen=True)
class Piece:
    """A part of an output. is_expected: whether the expected output has it there, too."""

    text: str
    is_expected: bool


@dataclass(frozen=True, eq=False)
class Output:
    """What a system made of a sentence.

    seed: of its run, which is that of the median.
    pieces: of its text.
    quality: of the sentence.
    drawn: its attention as `ReportSection.drawn` gives it; empty without a map.
    """

    system: str
    seed: str
    pieces: list[Piece]
    quality: float
    drawn: Mapping[str, Any]

    @property
    def text(self) -> str:
        return " ".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, eq=False)
class Disputed:
    """A sentence on which systems disagree.

    gap: between the best and the worst quality.
    outputs: in the order of the ranking.
    """

    source: str
    expected: str
    gap: float
    outputs: list[Output]


@dataclass(frozen=True, eq=False)
class Disagreement:
    """sentences: those with the greatest gap of all, the greatest first.
    attended: those with the greatest gap of the rest that has attention maps.
    quality: what is measured of a sentence, in words.
    num_sentences: that all systems were tested on.
    num_attended: of these, how many have a map.
    """

    sentences: list[Disputed]
    attended: list[Disputed]
    quality: str
    num_sentences: int
    num_attended: int


@dataclass(frozen=True, eq=False)
class _Tested:
    """The median run of a system with its sentences by source."""

    system: System
    run: ComparedRun
    rows: Mapping[str, Mapping[str, Any]]
    qualities: Mapping[str, float]
    maps: Mapping[str, AttentionMap]

    def answer(self, source: str) -> Any:
        """What the model made of a sentence."""
        return self.rows[source].get(self.run.section.answer_key)


def disagreement(findings: Findings, count: int) -> Disagreement:
    """The sentences with the greatest gap between systems; ties in the order of the test split.

    Each system takes part with its run of the median seed.

    count: how many sentences are chosen of all, at most, and how many of all chosen have attention
        maps at least, where there are so many.
    """
    medians = [system.median_run(findings.wanted.measure) for system in findings.systems]
    # One kind of quality for all: it needs the metric of each run.
    has_metric = all((run.system, run.seed) in findings.sentence_scores for run in medians)
    tested = []
    for system, run in zip(findings.systems, medians, strict=True):
        tested.append(_tested(system, run, findings, has_metric))

    sources = _common_sources(tested)
    gaps = {source: _gap(source, tested) for source in sources}
    largest_first = sorted(sources, key=lambda source: -gaps[source])  # ties keep their order
    chosen = [source for source in largest_first if _differs(source, tested)][:count]

    with_maps = {source for source in sources if _has_map(source, tested)}
    further = [source for source in largest_first if source in with_maps and source not in chosen]
    missing_maps = max(0, count - len(with_maps.intersection(chosen)))
    attended = further[:missing_maps]
    return Disagreement(
        sentences=[_disputed(source, tested) for source in chosen],
        attended=[_disputed(source, tested) for source in attended],
        quality=_quality_in_words(findings, medians[0]) if has_metric else "whether it is right",
        num_sentences=len(sources),
        num_attended=len(with_maps),
    )


def _quality_in_words(findings: Findings, run: ComparedRun) -> str:
    measure = findings.measures.named(str(run.section.sentence_metric))
    return f"sentence {measure.label}"


def _tested(system: System, run: ComparedRun, findings: Findings, has_metric: bool) -> _Tested:
    section = run.section
    rows: dict[str, Mapping[str, Any]] = {}
    qualities: dict[str, float] = {}
    scores = findings.sentence_scores.get((run.system, run.seed))
    for number, row in enumerate(run.evaluation.sentences):
        source = row[section.source_key]
        if source in rows:  # a sentence that occurs again
            continue
        rows[source] = row
        if has_metric and scores is not None:
            qualities[source] = float(scores[number])
        else:
            is_right = row.get(section.answer_key) == row[section.expected_key]
            qualities[source] = float(is_right)
    return _Tested(system, run, rows, qualities, section.maps_by_source(run.evaluation))


def _common_sources(tested: Sequence[_Tested]) -> list[str]:
    """The sentences that all systems were tested on, in the order of the test split."""
    first, *others = tested
    return [source for source in first.rows if all(source in other.rows for other in others)]


def _differs(source: str, tested: Sequence[_Tested]) -> bool:
    """Whether not all systems made the same of a sentence."""
    answers = {str(each.answer(source)) for each in tested}
    return len(answers) > 1


def _has_map(source: str, tested: Sequence[_Tested]) -> bool:
    return any(source in each.maps for each in tested)


def _gap(source: str, tested: Sequence[_Tested]) -> float:
    qualities = [each.qualities[source] for each in tested]
    return max(qualities) - min(qualities)


def _disputed(source: str, tested: Sequence[_Tested]) -> Disputed:
    first = tested[0]
    expected = str(first.rows[source][first.run.section.expected_key])
    outputs = [_output(source, expected, each) for each in tested]
    return Disputed(source, expected, _gap(source, tested), outputs)


def _output(source: str, expected: str, tested: _Tested) -> Output:
    attention = tested.maps.get(source)
    drawn: Mapping[str, Any] = {}
    if attention is not None:
        drawn = tested.run.section.drawn(attention, tested.rows[source])
    return Output(
        system=tested.system.name,
        seed=tested.run.seed,
        pieces=pieces(str(tested.answer(source) or ""), expected),
        quality=tested.qualities[source],
        drawn=drawn,
    )


def pieces(answer: str, expected: str) -> list[Piece]:
    """The tokens of an output, those together that the expected output has, too, or has not."""
    ours = answer.split()
    matcher = SequenceMatcher(None, ours, expected.split(), autojunk=False)
    found = []
    for tag, start, end, _, _ in matcher.get_opcodes():
        if start < end:
            found.append(Piece(" ".join(ours[start:end]), tag == "equal"))
    return found
