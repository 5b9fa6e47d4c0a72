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


def disagreement(findings: Findings, count: int) -> Disagreement:
    """The sentences with the greatest gap between systems; ties in the order of the test split.

    Each system takes part with its run of the median seed.

    count: how many sentences are chosen of all, at most, and how many of all chosen have attention
        maps at least, where there are so many.
    """
    wanted = findings.wanted.measure
    medians = [(system, system.median_run(wanted)) for system in findings.systems]
    # One kind of quality for all: it needs the metric of each run.
    has_metric = all((run.system, run.seed) in findings.sentence_scores for _, run in medians)
    tested = [_tested(system, run, findings, has_metric) for system, run in medians]

    sources = [source for source in tested[0].rows if all(source in each.rows for each in tested)]
    gaps = {source: _gap(source, tested) for source in sources}
    largest_first = sorted(sources, key=lambda source: -gaps[source])  # ties keep their order
    chosen = [source for source in largest_first if _differs(source, tested)][:count]

    with_maps = {source for source in sources if any(source in each.maps for each in tested)}
    rest = [source for source in largest_first if source in with_maps and source not in chosen]
    attended = rest[: max(0, count - len(with_maps.intersection(chosen)))]
    quality = "whether it is right"
    if has_metric:
        section = medians[0][1].section
        quality = f"sentence {findings.measures.named(str(section.sentence_metric)).label}"
    return Disagreement(
        [_disputed(source, tested, gaps) for source in chosen],
        [_disputed(source, tested, gaps) for source in attended],
        quality,
        len(sources),
        len(with_maps),
    )


def _tested(system: System, run: ComparedRun, findings: Findings, has_metric: bool) -> _Tested:
    key, expected = run.section.source_key, run.section.expected_key
    rows: dict[str, Mapping[str, Any]] = {}
    qualities: dict[str, float] = {}
    scores = findings.sentence_scores.get((run.system, run.seed))
    for number, row in enumerate(run.evaluation.sentences):
        source = row[key]
        if source in rows:  # a sentence that occurs again
            continue
        rows[source] = row
        if has_metric and scores is not None:
            qualities[source] = float(scores[number])
        else:
            qualities[source] = float(row.get(run.section.answer_key) == row[expected])
    return _Tested(system, run, rows, qualities, run.section.maps_by_source(run.evaluation))


def _differs(source: str, tested: Sequence[_Tested]) -> bool:
    return len({str(_answer(source, each)) for each in tested}) > 1


def _answer(source: str, tested: _Tested) -> Any:
    return tested.rows[source].get(tested.run.section.answer_key)


def _gap(source: str, tested: Sequence[_Tested]) -> float:
    qualities = [each.qualities[source] for each in tested]
    return max(qualities) - min(qualities)


def _disputed(source: str, tested: Sequence[_Tested], gaps: Mapping[str, float]) -> Disputed:
    expected = str(tested[0].rows[source][tested[0].run.section.expected_key])
    outputs = []
    for each in tested:
        attention = each.maps.get(source)
        drawn: Mapping[str, Any] = {}
        if attention is not None:
            drawn = each.run.section.drawn(attention, each.rows[source])
        output = Output(
            each.system.name,
            each.run.seed,
            pieces(str(_answer(source, each) or ""), expected),
            each.qualities[source],
            drawn,
        )
        outputs.append(output)
    return Disputed(source, expected, gaps[source], outputs)


def pieces(answer: str, expected: str) -> list[Piece]:
    """The tokens of an output, those together that the expected output has, too, or has not."""
    ours = answer.split()
    matcher = SequenceMatcher(None, ours, expected.split(), autojunk=False)
    found = []
    for tag, start, end, _, _ in matcher.get_opcodes():
        if start < end:
            found.append(Piece(" ".join(ours[start:end]), tag == "equal"))
    return found
