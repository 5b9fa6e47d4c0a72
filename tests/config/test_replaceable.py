from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.config.paths import (
    EVALUATION,
    LEARNING_CURVES,
    MODEL,
    PREPARED_DATA,
    REPORT,
    Paths,
    check_replaceable,
)
from attnlab.errors import ExperimentError


def check(folder: Path) -> None:
    check_replaceable("paths.model", folder, MODEL)


def test_an_earlier_output_may_be_replaced(tmp_path):
    check(tmp_path / "absent")
    check(tmp_path)
    (tmp_path / "model.json").write_text('{"identity": "0"}')
    (tmp_path / "weights.safetensors").write_text("")
    check(tmp_path)


@pytest.mark.parametrize("name", ["thesis.txt", ".hidden", "model.json/inside"])
def test_something_else_is_not(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("years of work")
    with pytest.raises(ExperimentError, match=r"^paths.model: .* holds something else than a model"):
        check(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model").write_text("")
    with pytest.raises(ExperimentError, match=r"^paths.model: .* is a file; name a folder"):
        check(tmp_path / "model")


@pytest.mark.parametrize("name", ["notes.txt", "thesis/chapter.txt", ".hidden"])
def test_something_else_beside_an_earlier_output_stays(tmp_path, name):
    (tmp_path / "model.json").write_text('{"identity": "0"}')
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("years of work")
    with pytest.raises(ExperimentError, match=rf"something else than a model \({name}\), which would be lost"):
        check(tmp_path)


PAGE = '<meta name="generator" content="attnlab">'
OTHERS = {
    "a home page": (REPORT, {"index.html": "<html>", "pictures/holiday.jpg": ""}),
    "a page of pictures": (REPORT, {"index.html": "<html>", "pictures/curves.png": ""}),
    "a thesis": (EVALUATION, {"metrics.json": "{}", "thesis.html": "", "photo.png": ""}),
    "metrics of another program": (EVALUATION, {"metrics.json": "{}"}),
    "signatures of another program": (EVALUATION, {"metrics.json": "{}", "signatures.json": '{"a": 1}'}),
    "data of another program": (PREPARED_DATA, {"data.json": '{"format":"csv"}', "train.arrow": ""}),
    "pictures of a report": (REPORT, {"index.html": PAGE, "pictures/attention_of/mine.png": ""}),
    "secrets": (PREPARED_DATA, {"data.json": '{"format": 3}', "secrets.json": "{}"}),
    "notes": (MODEL, {"model.json": '{"identity": "0"}', "my_notes.json": "{}"}),
    "a model of another program": (MODEL, {"model.json": "{}", "config.json": "{}"}),
    "curves of another program": (LEARNING_CURVES, {"history.csv": "epoch,loss\n"}),
    "a link": (LEARNING_CURVES, {"history.csv": "step,epoch,name,value\n", "elsewhere": None}),
    "empty folders": (MODEL, {"deep/empty/": None}),
}


@pytest.mark.parametrize(("output", "files"), OTHERS.values(), ids=OTHERS)
def test_check_replaceable_refuses_a_folder_with_files_that_are_no_output(tmp_path, output, files):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            (tmp_path / name).write_text(content)
        elif name.endswith("/"):
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).symlink_to("/")
    with pytest.raises(ExperimentError, match=f"something else than {output.what}.*, which would be lost"):
        check_replaceable("paths.x", tmp_path, output)


PLACES = dict.fromkeys(("data", "model", "ensemble", "training", "evaluation", "report"))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"model": "out", "training": "out"}, "model must not lie in paths.training"),
        ({"model": "d/model", "data": "d"}, "model must not lie in paths.data"),
        ({"runs": "out/runs", "model": "x/../out"}, "runs must not lie in paths.model"),
        ({"runs": "out", "report": "out"}, "runs must not lie in paths.report"),
        ({"runs": "~/runs"}, "runs must be written out, got '~/runs'; give '/"),
    ],
)
def test_places_that_nothing_may_be_written_to(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        Paths(**{**PLACES, "runs": "runs", **wrong})


def test_outputs_may_lie_beside_each_other_and_in_runs():
    Paths(**{**PLACES, "runs": "runs", "data": "build/data", "model": "build/data2", "report": "runs/report"})
