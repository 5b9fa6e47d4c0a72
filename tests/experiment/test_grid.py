"""The points of a grid, as the plan counts them and the sweeper launches them."""

from __future__ import annotations

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from attnlab.errors import ExperimentError
from attnlab.experiment.grid import check_grid, grid
from hydra_plugins.attnlab_grid_sweeper import grid_values

PARSER = OverridesParser.create()


def points(*overrides: str, listed: list[list[str]] | None = None) -> list[list[str]]:
    return grid(grid_values(PARSER, overrides), listed or [[]])


def test_last_override_varies_fastest() -> None:
    assert points("a=1,2", "b=3", "c=4,5") == [
        ["a=1", "b=3", "c=4"],
        ["a=1", "b=3", "c=5"],
        ["a=2", "b=3", "c=4"],
        ["a=2", "b=3", "c=5"],
    ]


def test_last_values_of_a_repeated_key_count() -> None:
    assert points("a=1,2", "b=7", "a=3,4,5") == [["a=3", "b=7"], ["a=4", "b=7"], ["a=5", "b=7"]]
    assert points("a=1,2", "a=3") == [["a=3"]]


def test_equal_points_count_once() -> None:
    assert points("a=1,2,1") == [["a=1"], ["a=2"]]
    assert points("a=1,1", listed=[["b=2"], ["b=2"]]) == [["b=2", "a=1"]]


def test_deleted_key_has_no_value() -> None:
    assert points("a=1,2", "~b") == [["a=1", "~b"], ["a=2", "~b"]]


def test_interval_is_refused() -> None:
    with pytest.raises(ExperimentError, match="sweep=grid takes values and no interval"):
        check_grid(PARSER.parse_overrides(["a=interval(0,1)"]))
