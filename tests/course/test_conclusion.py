"""The grading of conclusions: what the seeds support passes, and luck does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.course.check import check
from attnlab.course.conclusion import Interval, verdict_on
from attnlab.errors import ExperimentError
from attnlab.evaluation.measures import Measure
from made_sweep import write_sweep

# Shares of right sentences: the first is far better than the third, and as good as the second.
SYSTEMS = {"bahdanau": 0.95, "dot": 0.94, "none": 0.2}
SURE = {
    "system": "bahdanau",
    "than": "no attention",
    "metric": "exact_match",
    "conclusion": "better",
}


def write_conclusion(folder: Path, **fields: str) -> Path:
    file = folder / "conclusion.yaml"
    file.write_text("".join(f"{name}: {value}\n" for name, value in fields.items()), "utf-8")
    return file


def graded(folder: Path, trained: tuple[int, ...], **fields: str) -> str:
    write_sweep(folder / "runs", SYSTEMS, seeds=trained, failed=False)
    found = check("lesson-2", write_conclusion(folder, **{**SURE, **fields}))
    return " ".join(sentence.en for sentence in found)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"system": "no attention", "than": "bahdanau", "conclusion": "worse"},
        {"system": "bahdanau", "than": "dot", "conclusion": "undecided"},
        {"metric": "token_nll"},  # lower is better
    ],
)
def test_supported_conclusion_passes(tmp_path, fields):
    assert graded(tmp_path, (1, 2, 3, 4, 5), **fields) == ""


def test_conclusion_from_one_seed_is_refused(tmp_path):
    found = graded(tmp_path, (1,))
    assert "bahdanau has 1 seed(s)" in found
    assert "no attention has 1 seed(s)" in found


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"than": "dot"}, "the interval contains 0"),  # the seeds that happened to win
        ({"than": "dot", "conclusion": "worse"}, "the interval contains 0"),
        ({"conclusion": "worse"}, "points the other way"),
        ({"metric": "token_nll", "conclusion": "worse"}, "points the other way"),
        ({"conclusion": "undecided"}, "the interval excludes 0"),
    ],
)
def test_unsupported_conclusion_is_refused(tmp_path, fields, says):
    assert says in graded(tmp_path, (1, 2, 3, 4, 5), **fields)


def test_interval_is_written_in_the_language(tmp_path):
    write_sweep(tmp_path / "runs", SYSTEMS, seeds=(1, 2, 3), failed=False)
    (found,) = check("lesson-2", write_conclusion(tmp_path, **{**SURE, "conclusion": "worse"}))
    assert " to " in found.en
    assert " ~ " in found.ko
    assert " to " not in found.ko


@pytest.mark.parametrize(
    ("low", "high", "better", "verdict"),
    [
        (0.1, 0.3, "↑", "better"),
        (0.1, 0.3, "↓", "worse"),
        (-0.3, -0.1, "↓", "better"),
        (-0.1, 0.3, "↑", "undecided"),
        (0.0, 0.0, "↑", "undecided"),
    ],
)
def test_verdict_follows_the_interval_and_the_better_direction(low, high, better, verdict):
    measure = Measure("f1", "F1", better, digits=2, meaning="")
    assert verdict_on(Interval((low + high) / 2, low, high), measure) == verdict


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"system": "cosine"}, "system must be one of the sweep's systems"),
        ({"conclusion": "great"}, "conclusion must be one of better, worse, undecided"),
        ({"seeds": "3"}, "seeds is unknown"),
        ({"than": "bahdanau", "conclusion": "undecided"}, "system and than are the same"),
    ],
)
def test_mistake_in_a_conclusion_is_a_sentence(tmp_path, fields, says):
    assert says in graded(tmp_path, (1, 2, 3), **fields)


def test_unknown_metric_is_refused(tmp_path):
    with pytest.raises(ExperimentError, match="metric must be one that all runs have"):
        graded(tmp_path, (1, 2, 3), metric="beauty")


def test_conclusion_without_a_metric_is_a_sentence(tmp_path):
    file = write_conclusion(tmp_path, system="bahdanau", than="no attention", conclusion="better")
    assert "metric is missing" in check("lesson-2", file)[0].en


@pytest.mark.parametrize("name", ["lesson-0", "lesson-13", "3", "lesson"])
def test_unknown_lesson_is_a_sentence(tmp_path, name):
    assert "must be lesson-1 to lesson-12" in check(name, tmp_path / "mine.py")[0].en


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("mine.txt", "", "must end in .py"),
        ("mine.yaml", "3", "must be a list of settings"),
        ("mine.yaml", "padding: pre_post", "must be a list of settings"),
        ("mine.yaml", "a: [", "cannot be read as YAML"),
        ("mine.yaml", "- padding=pre_post", "lesson-3 asks for no settings"),
    ],
)
def test_file_that_is_no_exercise_is_a_sentence(tmp_path, name, text, says):
    (tmp_path / name).write_text(text, "utf-8")
    assert says in check("lesson-3", tmp_path / name)[0].en


def test_missing_file_is_a_sentence(tmp_path):
    assert "there is no file" in check("lesson-3", tmp_path / "mine.py")[0].en
