"""The sentences on which compared systems disagree most."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from statistics import fmean

import pytest
from sacrebleu.metrics import CHRF

from attnlab.report.disagreement import Piece, disagreement, pieces
from attnlab.report.findings import Findings, Wanted, findings_of
from attnlab.report.run_sources import runs_of_sweep
from attnlab.report.systems import System
from made_sweep import write_sweep


def findings_in(folder: Path, translates: bool = True, **systems: float) -> Findings:
    sweep = write_sweep(folder, systems, (1, 2, 3), translates, failed=False)
    wanted = Wanted("bleu" if translates else "accuracy", None, 100, 0.95, 1)
    return findings_of(runs_of_sweep(sweep, folder).runs, wanted, lambda *_: None)


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_in(tmp_path_factory.mktemp("sweep"), bahdanau=0.9, dot=0.6, none=0.2)


def test_disputed_sentences_have_the_largest_gaps_of_means_over_seeds(findings: Findings) -> None:
    metric = CHRF()

    def mean_score(system: System, number: int) -> float:
        rows = [run.evaluation.sentences[number] for run in system.runs]
        scores = [metric.sentence_score(row["hypothesis"], [row["reference"]]) for row in rows]
        return fmean(score.score for score in scores)

    gaps = {}
    sentences = findings.systems[0].runs[0].evaluation.sentences
    for number, row in enumerate(sentences):
        means = [mean_score(system, number) for system in findings.systems]
        gaps[row["source"]] = max(means) - min(means)
    expected = sorted(gaps, key=lambda source: -gaps[source])

    found = disagreement(findings, 5)
    assert [each.source for each in found.sentences] == expected[:5]
    assert [each.gap for each in found.sentences] == pytest.approx(
        [gaps[source] for source in expected[:5]]
    )
    assert (found.quality, found.num_sentences, found.num_attended) == ("sentence chrF2", 40, 4)


def test_outputs_are_those_of_the_median_seed_in_the_order_of_the_ranking(
    findings: Findings,
) -> None:
    (sentence,) = disagreement(findings, 1).sentences
    assert [output.system for output in sentence.outputs] == ["bahdanau", "dot", "no attention"]
    for system, output in zip(findings.systems, sentence.outputs, strict=True):
        run = system.median_run("bleu")
        assert output.seed == run.seed
        (row,) = [row for row in run.evaluation.sentences if row["source"] == sentence.source]
        assert " ".join(piece.text for piece in output.pieces) == row["hypothesis"]


def test_sentences_with_attention_follow_by_their_gaps(findings: Findings) -> None:
    found = disagreement(findings, 6)
    shown = [*found.sentences, *found.attended]
    with_maps = [each for each in shown if any(output.drawn for output in each.outputs)]
    assert len(with_maps) == 4  # all that evaluations saved
    gaps = [each.gap for each in found.attended]
    assert gaps == sorted(gaps, reverse=True)
    for sentence in with_maps:
        attention = {output.system: bool(output.drawn) for output in sentence.outputs}
        assert attention == {"bahdanau": True, "dot": True, "no attention": False}


def test_systems_that_answer_alike_have_no_disputed_sentences(tmp_path: Path) -> None:
    found = disagreement(findings_in(tmp_path, bahdanau=1.0, dot=1.0), 6)
    assert found.sentences == []
    assert len(found.attended) == 4


def test_disagreement_of_classifiers_is_whether_they_are_right(tmp_path: Path) -> None:
    found = disagreement(findings_in(tmp_path, translates=False, bahdanau=0.9, dot=0.2), 3)
    assert found.quality == "whether it is right"
    assert [sentence.gap for sentence in found.sentences] == [1.0] * 3


def test_disagreement_of_older_evaluations_without_chrf_is_whether_they_are_right(
    findings: Findings,
) -> None:
    found = disagreement(dataclasses.replace(findings, sentence_scores={}), 3)
    assert found.quality == "whether it is right"
    assert [sentence.gap for sentence in found.sentences] == [1.0] * 3


def test_pieces_say_which_tokens_the_expected_text_has() -> None:
    assert pieces("the cat mat sat", "the cat sat") == [
        Piece("the cat", True),
        Piece("mat", False),
        Piece("sat", True),
    ]
    assert pieces("the sat", "the cat sat") == [
        Piece("the", True),
        Piece("", False, lacks="cat"),
        Piece("sat", True),
    ]
    assert pieces("", "the cat") == [Piece("", False, lacks="the cat")]
