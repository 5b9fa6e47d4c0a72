"""The newest heat maps stay, and the best one."""

import json

import pytest

from attnlab.errors import ExperimentError
from attnlab.tracking.retention import keep_heat_maps, retired_heat_maps


def test_nothing_was_ever_drawn(tmp_path):
    assert retired_heat_maps(tmp_path) == []


def test_the_newest_and_the_best_stay(tmp_path):
    for step, score in [(100, 0.2), (200, 0.9), (300, 0.9), (400, 0.1), (500, float("nan"))]:
        kept = keep_heat_maps(tmp_path, step, score, newest=2, mode="max")
    assert kept == ["step_000200", "step_000400", "step_000500"]
    assert retired_heat_maps(tmp_path) == ["step_000100", "step_000300"]


def test_small_can_be_good_and_scores_can_be_missing(tmp_path):
    keep_heat_maps(tmp_path, 100, 0.1, newest=1, mode="min")
    keep_heat_maps(tmp_path, 200, 0.5, newest=1, mode="min")
    assert keep_heat_maps(tmp_path, 300, None, newest=1, mode="min") == ["step_000100", "step_000300"]


def test_steps_of_seven_digits_are_newer_than_those_of_six(tmp_path):
    keep_heat_maps(tmp_path, 999_999, None, newest=1, mode="min")
    assert keep_heat_maps(tmp_path, 1_000_000, None, newest=1, mode="min") == ["step_1000000"]


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"kept": 3, "scores": {}}', '{"kept": [], "scores": {"step_x": 1.0}}']
)
def test_a_damaged_file_retires_nothing_and_ends_no_training(content, tmp_path, capsys):
    (tmp_path / "heat_maps.json").write_text(content)
    with pytest.raises(ExperimentError, match=r"heat_maps\.json is damaged .*; remove it, and all heat maps stay"):
        retired_heat_maps(tmp_path)
    assert keep_heat_maps(tmp_path, 300, 0.5, newest=1, mode="max") == ["step_000300"]
    assert "heat_maps.json is damaged" in capsys.readouterr().err
    assert json.loads((tmp_path / "heat_maps.json").read_text())["scores"] == {"step_000300": 0.5}
    assert retired_heat_maps(tmp_path) == []
