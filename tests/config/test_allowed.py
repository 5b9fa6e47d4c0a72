"""Which classes a `_target_` may name: ours, at home where it says, and of the kind that the place takes."""

from __future__ import annotations

import pytest

from attnlab.config.allowed import allowed_class, allowed_targets
from attnlab.config.binding import bind
from attnlab.errors import ExperimentError
from attnlab.model.attention.score import Score
from attnlab.model.encoder import Encoder
from attnlab.search.search import Search


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "torch.hub.load",
        "torch.nn.Linear",
        "builtins.eval",
        "attnlab.model.encoder.nn",  # a name that the module imported
        "attnlab.model.encoder.nn.Linear",
        "attnlab.model.encoder.pack_padded_sequence",
        "attnlab.model.attention.dot.nn.Module",
        "attnlab.model.attention.dot.Score",  # imported there, and abstract
        "attnlab.model.attention.score.Score",  # an abstract base
        "attnlab.model.encoder.Encoder",  # another kind
        "attnlab.model.attention.dot",  # a module
        "attnlab.model.attention.dot.DotScore.project_keys",
        "attnlab.model.attention.missing.Score",
        "attnlab.model.attention.dot.Missing",
        "attnlab.model.attention.bahdanau.math.sqrt",
        "attnlab",
        "attnlab.",
        "attnlab..dot.DotScore",
        " attnlab.model.attention.dot.DotScore",
        "attnlab.model.attention.dot.DotScore\n",
        "DotScore",
        "",
        "__main__.x",
        3,
        True,
        ["attnlab.model.attention.dot.DotScore"],
    ],
)
def test_a_target_that_is_not_allowed(target):
    with pytest.raises(ExperimentError) as caught:
        bind({"_target_": target}, Score, "model.attention")
    (problem,) = caught.value.problems
    assert problem.startswith(
        "model.attention._target_ must be one of attnlab.model.attention.bahdanau.BahdanauScore, "
    )
    assert "attnlab.model.attention.dot.DotScore" in problem
    assert "; got " in problem


def test_a_foreign_module_is_not_even_imported(tmp_path, monkeypatch):
    (tmp_path / "attnlab_evil.py").write_text("raise SystemExit('this ran')")
    monkeypatch.syspath_prepend(tmp_path)
    assert allowed_class("attnlab_evil.Anything", Score) is None
    assert allowed_class("antigravity.geohash", Score) is None


def test_allowed_targets_are_the_concrete_classes_of_the_kind():
    assert allowed_targets(Search) == [
        "attnlab.search.beam.BeamSearch",
        "attnlab.search.greedy.GreedySearch",
        "attnlab.search.sample.SampleSearch",
    ]
    assert allowed_targets(Encoder) == ["attnlab.model.encoder.Encoder"]
    assert all(allowed_class(target, Score) for target in allowed_targets(Score))
