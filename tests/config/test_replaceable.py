"""Which folders an output may replace, and which paths exclude each other."""

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


def test_absent_empty_or_earlier_output_may_be_replaced(tmp_path):
    check(tmp_path / "absent")
    check(tmp_path)
    (tmp_path / "model.json").write_text('{"identity": "0"}')
    (tmp_path / "weights.safetensors").write_text("")
    check(tmp_path)


def test_file_in_the_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "model").write_text("")
    with pytest.raises(ExperimentError, match=r"^paths.model: .* is a file; name a folder"):
        check(tmp_path / "model")


PAGE = '<meta name="generator" content="attnlab">'
OURS = {"model.json": '{"identity": "0"}'}
OTHERS = {
    "a thesis": (MODEL, {"thesis.txt": "years of work"}),
    "empty folders": (MODEL, {"deep/empty/": None}),
    "a folder of the same name": (MODEL, {"model.json/inside": ""}),
    "notes beside a model": (MODEL, {**OURS, "notes.txt": ""}),
    "a hidden file beside a model": (MODEL, {**OURS, ".hidden": ""}),
    "a home page": (REPORT, {"index.html": "<html>", "pictures/holiday.jpg": ""}),
    "a photo beside a report": (REPORT, {"index.html": PAGE, "pictures/holiday.jpg": ""}),
    "metrics of another program": (EVALUATION, {"metrics.json": "{}"}),
    "data of another program": (PREPARED_DATA, {"data.json": '{"format":"csv"}', "train.arrow": ""}),
    "curves of another program": (LEARNING_CURVES, {"history.csv": "epoch,loss\n"}),
}


@pytest.mark.parametrize(("output", "files"), OTHERS.values(), ids=OTHERS)
def test_check_replaceable_refuses_a_folder_with_files_that_are_no_output(tmp_path, output, files):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_text(content)
    with pytest.raises(ExperimentError, match=f"^paths.x: .*something else than {output.what}.*, which would be lost"):
        check_replaceable("paths.x", tmp_path, output)


PLACES = dict.fromkeys(("data", "model", "ensemble", "training", "evaluation", "report"))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"model": "out", "training": "out"}, "model must not lie in paths.training"),
        ({"model": "d/model", "data": "d"}, "model must not lie in paths.data"),
        ({"runs": "out/runs", "model": "x/../out"}, "runs must not lie in paths.model"),
        ({"runs": "out", "report": "out"}, "runs must not lie in paths.report"),
        ({"runs": "~/runs"}, "runs must be an absolute or relative path without ~, got '~/runs'"),
    ],
)
def test_paths_that_would_delete_each_other_are_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        Paths(**{**PLACES, "runs": "runs", **wrong})


def test_paths_beside_each_other_and_in_runs_are_accepted():
    Paths(**{**PLACES, "runs": "runs", "data": "build/data", "model": "build/data2", "report": "runs/report"})
