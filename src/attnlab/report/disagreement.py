"""Sentences on which the compared systems disagree most, with what each made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.report.compared_runs import ComparedRun
from attnlab.report.findings import Findings
from attnlab.report.systems import System


@dataclass(frozen=True)
class Piece:
    """A part of an output, or a gap in it.

    text: empty where the output lacks something.
    is_expected: whether the expected output has it there, too.
    lacks: what the expected output has here, and this one has not.
    """

    text: str
    is_expected: bool
    lacks: str = ""


@dataclass(frozen=True, eq=False)
class Output:
    """What a system made of a sentence.

    seed: of its run, which is that of the median.
    pieces: of its text.
    quality: of its text.
    mean_quality: of the sentence over all seeds of the system; None where it has one seed.
    drawn: its attention as `ReportSection.drawn` gives it; empty without a map.
    """

    system: str
    seed: str
    pieces: list[Piece]
    quality: float
    mean_quality: float | None
    drawn: Mapping[str, Any]

    @property
    def text(self) -> str:
        return " ".join(piece.text for piece in self.pieces if piece.text)


@dataclass(frozen=True, eq=False)
class Disputed:
    """A sentence on which systems disagree.

    gap: between the best and the worst system, each with the mean quality over its seeds.
    outputs: in the order of the ranking.
    """

    source: str
    expected: str
    gap: float
    outputs: list[Output]

    @property
    def has_maps(self) -> bool:
        return any(output.drawn for output in self.outputs)


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

    @property
    def shows_maps_first(self) -> bool:
        """Whether no sentence of the greatest gaps has maps, but another that is disputed has."""
        if not self.sentences or not self.attended:
            return False
        return self.attended[0].gap > 0 and not any(each.has_maps for each in self.sentences)


@dataclass(frozen=True, eq=False)
class _Tested:
    """The median run of a system with its sentences by source.

    qualities: of its sentences.
    means: the same over all seeds of the system.
    """

    system: System
    run: ComparedRun
    rows: Mapping[str, Mapping[str, Any]]
    qualities: Mapping[str, float]
    means: Mapping[str, float]
    maps: Mapping[str, AttentionMap]

    def answer(self, source: str) -> Any:
        """What the model made of a sentence."""
        return self.rows[source].get(self.run.section.answer_key)


def disagreement(findings: Findings, count: int) -> Disagreement:
    """The sentences with the greatest gap between systems; ties in the order of the test split.

    The gap is one of means over the seeds, for a single seed may fail where all others are right.
    The outputs are those of each system's run of the median seed.

    count: how many sentences are chosen of all, at most, and how many of all chosen have attention
        maps at least, where there are so many.
    """
    medians = [system.median_run(findings.wanted.measure) for system in findings.systems]
    # One kind of quality for all: it needs the metric of each run.
    runs = [run for system in findings.systems for run in system.runs]
    has_metric = all((run.system, run.seed) in findings.sentence_scores for run in runs)
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
    source_key = run.section.source_key
    rows: dict[str, Mapping[str, Any]] = {}
    for row in run.evaluation.sentences:
        rows.setdefault(row[source_key], row)  # a sentence may occur again
    qualities = _qualities(run, findings, has_metric)
    of_seeds = [_qualities(each, findings, has_metric) for each in system.runs]
    means = {}
    for source in rows:
        known = [each[source] for each in of_seeds if source in each]
        means[source] = sum(known) / len(known)
    return _Tested(
        system=system,
        run=run,
        rows=rows,
        qualities=qualities,
        means=means,
        maps=run.section.maps_by_source(run.evaluation),
    )


def _qualities(run: ComparedRun, findings: Findings, has_metric: bool) -> dict[str, float]:
    """The quality of each sentence of a run, by source; of one that occurs again, the first."""
    section = run.section
    scores = findings.sentence_scores.get((run.system, run.seed))
    qualities: dict[str, float] = {}
    for number, row in enumerate(run.evaluation.sentences):
        if has_metric and scores is not None:
            quality = float(scores[number])
        else:
            quality = float(row.get(section.answer_key) == row[section.expected_key])
        qualities.setdefault(row[section.source_key], quality)
    return qualities


def _common_sources(tested: Sequence[_Tested]) -> list[str]:
    """The sentences that all systems were tested on, in the order of the test split."""
    first, *others = tested
    return [source for source in first.rows if all(source in other.rows for other in others)]


def _differs(source: str, tested: Sequence[_Tested]) -> bool:
    """Whether not all systems made the same of a sentence, in the runs that are shown or others."""
    answers = {str(each.answer(source)) for each in tested}
    return len(answers) > 1 or _gap(source, tested) > 0


def _has_map(source: str, tested: Sequence[_Tested]) -> bool:
    return any(source in each.maps for each in tested)


def _gap(source: str, tested: Sequence[_Tested]) -> float:
    means = [each.means[source] for each in tested]
    return max(means) - min(means)


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
        mean_quality=tested.means[source] if len(tested.system.runs) > 1 else None,
        drawn=drawn,
    )


def pieces(answer: str, expected: str) -> list[Piece]:
    """The tokens of an output, those together that the expected output has, too, or has not.

    Where tokens of the expected output are missing, a piece without text says which.
    """
    ours = answer.split()
    theirs = expected.split()
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    found = []
    for tag, start, end, their_start, their_end in matcher.get_opcodes():
        if start < end:
            found.append(Piece(" ".join(ours[start:end]), tag == "equal"))
        else:
            lacks = " ".join(theirs[their_start:their_end])
            found.append(Piece("", is_expected=False, lacks=lacks))
    return found
