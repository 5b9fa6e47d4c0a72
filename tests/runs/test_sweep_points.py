"""The file with the points of `sweep=listed`."""

from __future__ import annotations

import re

import pytest

from attnlab.errors import ExperimentError
from attnlab.runs.sweep_points import combined, read_points, varied_keys


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read"),
        ("[", "cannot be read"),
        ("", "must hold a list of points, each a list of overrides, got null"),
        ("seed: 1", "must hold a list of points"),
        ("- seed=1", "entry 1 of points.yaml must be a list of overrides such as"),
        ("- [seed=1]\n- [seed]", "entry 2 of points.yaml must be a list of overrides such as"),
        ("- [{seed: 1}]", "entry 1 of points.yaml must be a list of overrides such as"),
    ],
)
def test_file_without_points_is_a_sentence(text, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "points.yaml").write_text(text)
    with pytest.raises(ExperimentError, match=f"^sweep.points: .*{re.escape(says)}"):
        read_points("points.yaml")


def test_every_listed_point_is_combined_with_every_point_of_the_command():
    listed = [["a=1", "b=1"], ["a=2"]]
    assert combined(listed, [["seed=1"], ["seed=2"]]) == [
        ["a=1", "b=1", "seed=1"],
        ["a=1", "b=1", "seed=2"],
        ["a=2", "seed=1"],
        ["a=2", "seed=2"],
    ]


def test_command_goes_over_the_list_and_no_point_comes_twice():
    listed = [["+a=1", "seed=1"], ["+a=1", "seed=2"]]
    assert combined(listed, [["seed=7"]]) == [["+a=1", "seed=7"]]


def test_keys_with_one_value_for_all_points_do_not_vary():
    listed = [["data=copy", "model/attention=dot"], ["data=copy", "seed=2"]]
    assert varied_keys(listed) == ["model/attention", "seed"]
    assert varied_keys([[]]) == []
