"""The histogram of lengths, whatever the lengths are."""

from __future__ import annotations

import numpy as np

from attnlab.plots.length_histogram import length_histogram


def heights(sides: dict[str, dict[int, int]]) -> list[np.ndarray]:
    (axes,) = length_histogram(sides).axes
    return [patch.get_data().values for patch in axes.patches]


def test_a_bar_for_each_length() -> None:
    assert [each.tolist() for each in heights({"source": {3: 5, 4: 1, 7: 2}})] == [[5, 1, 0, 0, 2]] * 2


def test_a_single_enormous_row_makes_no_million_bars() -> None:
    for each in heights({"source": {2: 40, 3: 7, 1_000_000: 1}}):
        assert len(each) <= 2_000
        assert each.sum() == 48
        assert each[0] == 47
        assert each[-1] == 1
