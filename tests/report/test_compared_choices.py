"""Which settings differ between the compared systems."""

from __future__ import annotations

from attnlab.report.comparison.choices import varying


def test_no_attention_and_its_decoder_are_one_choice():
    none = {"attention": "none", "decoder": "no_attention"}
    bahdanau = {"attention": "dot", "decoder": "attend_then_step"}
    luong = {"attention": "dot", "decoder": "step_then_attend"}
    assert varying([none, bahdanau]) == ["attention"]
    assert varying([none, bahdanau, luong]) == ["attention", "decoder"]
    assert varying([bahdanau, luong]) == ["decoder"]


def test_long_params_count_only_where_short_ones_do_not_tell_runs_apart():
    by_class = [
        {"attention": "dot", "seed": "1", "model.attention._target_": "D", "paths.data": "a"},
        {"attention": "dot", "seed": "2", "model.attention._target_": "D", "paths.data": "b"},
        {"attention": "concat", "seed": "1", "model.attention._target_": "C", "paths.data": "a"},
    ]
    assert varying(by_class) == ["attention"]
    by_rate = [
        {"attention": "dot", "seed": str(seed), "training.rate": rate} for seed in (1, 2) for rate in ("0.1", "1")
    ]
    assert varying(by_rate) == ["training.rate"]
    assert varying(by_rate[:1]) == []
