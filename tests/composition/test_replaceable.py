from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.composition.error import ExperimentError
from attnlab.composition.replaceable import check_replaceable


def check(folder: Path) -> None:
    check_replaceable("paths.model", folder, "a model", known_by="model.json")


def test_an_earlier_output_may_be_replaced(tmp_path):
    check(tmp_path / "absent")
    check(tmp_path)
    (tmp_path / "model.json").write_text("{}")
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
