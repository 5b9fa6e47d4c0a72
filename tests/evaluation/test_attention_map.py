"""Maps keep weights and tokens together, and are written without pickles to the same bytes."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from attnlab.evaluation.attention_map import AttentionMap, load_maps, save_maps


def test_attention_map_refuses_wrong_shapes() -> None:
    with pytest.raises(ValueError, match=r"\(T, S\) = \(2, 3\)"):
        AttentionMap(["a", "b", "c"], ["x", "y"], np.ones((3, 2)))


def test_saved_maps_load_again_and_have_the_same_bytes(tmp_path: Path) -> None:
    maps = [
        AttentionMap(
            ["안녕", "<eos>"],
            ["hello", "😀", "שלום"],
            np.random.default_rng(0).random((3, 2)),
            "제목",
        ),
        AttentionMap([], [], np.zeros((0, 0))),
        AttentionMap(["trail \0"], ["<script>"], np.ones((1, 1))),
        AttentionMap(
            ["a", "b"],
            ["x"],
            np.ones((1, 2)),
            sure_links=np.array([[0, 1]]),
            possible_links=np.array([[0, 0]]),
            wrong_targets=[0],
        ),
        AttentionMap(["a"], ["x"], np.ones((1, 1)), wrong_targets=[]),
    ]
    save_maps(maps, tmp_path / "first.npz")
    time.sleep(2.1)  # a zip file's clock ticks every two seconds
    save_maps(maps, tmp_path / "second.npz")
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()
    for ours, theirs in zip(load_maps(tmp_path / "first.npz"), maps, strict=True):
        assert ours.title == theirs.title
        assert ours.source_tokens == [token.replace("\0", "␀") for token in theirs.source_tokens]
        assert ours.target_tokens == theirs.target_tokens
        np.testing.assert_array_equal(ours.weights, theirs.weights)
        np.testing.assert_array_equal(ours.sure_links, theirs.sure_links)
        np.testing.assert_array_equal(ours.possible_links, theirs.possible_links)
        assert ours.wrong_targets == theirs.wrong_targets
    save_maps([], tmp_path / "none.npz")
    assert load_maps(tmp_path / "none.npz") == []
