"""Maps keep weights and tokens together, and are written without pickles to the same bytes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from attnlab.evaluation.attention_map import AttentionMap, load_maps, save_maps
from attnlab.tasks.translation.evaluation import Evaluation


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
    save_maps([], tmp_path / "none.npz")
    assert load_maps(tmp_path / "none.npz") == []


def test_evaluation_write_replaces_the_folder_and_writes_null_for_infinity(tmp_path: Path) -> None:
    sentences = [
        {"source": "Hallo\u2028Welt", "hypothesis": "안녕", "score": -0.5},
        {"source": "x", "hypothesis": "z", "score": float("-inf")},
    ]
    folder = tmp_path / "evaluation"
    metrics = {"bleu": 1.5, "perplexity": float("inf"), "aer": None}
    for _ in range(2):  # a second time replaces
        Evaluation(metrics, {"bleu": "tok:13a"}, sentences, [], [], [], []).write(folder)
    assert json.loads((folder / "metrics.json").read_text()) == {
        "aer": None,
        "bleu": 1.5,
        "perplexity": None,
    }
    lines = (folder / "hypotheses.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    assert rows[0]["source"] == "Hallo\u2028Welt"
    assert rows[1]["score"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["evaluation"]


def test_evaluation_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        Evaluation({"bleu": object()}, {}, [], [], [], [], []).write(tmp_path / "evaluation")  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
