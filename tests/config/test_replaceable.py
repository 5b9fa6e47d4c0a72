"""Which folders an output may replace, and which paths are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.config.paths import (
    EVALUATION,
    MODEL,
    PREPARED_DATA,
    REPORT,
    Paths,
    check_replaceable,
)
from attnlab.errors import ExperimentError


def is_refused(folder: Path) -> bool:
    try:
        check_replaceable("paths.model", folder, MODEL)
    except ExperimentError:
        return True
    return False


def test_absent_empty_or_earlier_output_may_be_replaced(tmp_path):
    assert not is_refused(tmp_path / "absent")
    assert not is_refused(tmp_path)
    (tmp_path / "model.json").write_text('{"identity": "0"}')
    (tmp_path / "weights.safetensors").write_text("")
    assert not is_refused(tmp_path)


def test_file_in_the_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "model").write_text("")
    with pytest.raises(ExperimentError, match=r"^paths.model: .* holds something else"):
        check_replaceable("paths.model", tmp_path / "model", MODEL)


OTHERS = {
    "a thesis": (MODEL, {"thesis.txt": "years of work"}),
    "empty folders": (MODEL, {"deep/empty/": None}),
    "a home page": (REPORT, {"index.html": "<html>", "photos/holiday.jpg": ""}),
    "metrics of another program": (EVALUATION, {"metrics.json": "{}"}),
    "data of another program": (
        PREPARED_DATA,
        {"data.json": '{"format":"csv"}', "train.arrow": ""},
    ),
}


@pytest.mark.parametrize(("mark", "files"), OTHERS.values(), ids=OTHERS)
def test_check_replaceable_refuses_a_folder_with_files_that_are_no_output(tmp_path, mark, files):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_text(content)
    with pytest.raises(
        ExperimentError, match=r"^paths\.x: .* holds something else, which would be lost"
    ):
        check_replaceable("paths.x", tmp_path, mark)


def test_runs_folder_with_a_tilde_is_refused():
    places = dict.fromkeys(("data", "model", "ensemble", "training", "evaluation", "report"))
    with pytest.raises(
        ValueError, match="runs must be an absolute or relative path without ~, got '~/runs'"
    ):
        Paths(**{**places, "runs": "~/runs"})
