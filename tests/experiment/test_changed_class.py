"""A node whose class is changed alone keeps the settings of the choice that it had before."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose

DOT = "attnlab.model.attention.dot.DotScore"
LEFT_OVER = (
    "model.attention.size is not a setting; model.attention has: no settings; the file of "
    "model/attention=bahdanau sets it, and it stays where model.attention._target_ alone is "
    "changed: remove it with ~model.attention.size, or write a file for the class and choose that, "
    "model/attention=<its name>"
)


def test_setting_left_from_the_former_choice_is_refused_with_its_origin() -> None:
    with pytest.raises(ExperimentError) as raised:
        compose(["model/attention=bahdanau", f"model.attention._target_={DOT}"])
    assert raised.value.problems[0] == LEFT_OVER


def test_setting_left_in_a_preset_is_refused_with_its_origin(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(
        f"# @package _global_\nmodel:\n  attention:\n    _target_: {DOT}\n"
    )
    searched = f"hydra.searchpath=[file://{tmp_path}]"
    with pytest.raises(ExperimentError) as raised:
        compose([searched, "model/attention=bahdanau", "experiment=mine"])
    assert raised.value.problems[0] == LEFT_OVER


def test_setting_of_a_preset_for_another_choice_is_refused_with_the_preset() -> None:
    chosen = ["experiment=sutskever2014", "model/initialisation=bahdanau"]
    with pytest.raises(ExperimentError) as raised:
        compose(chosen)
    (problem,) = raised.value.problems
    assert problem.startswith("model.initialisation.radius is not a setting; ")
    assert problem.endswith(
        "; experiment=sutskever2014 sets it, for another choice of model/initialisation: remove it "
        "with ~model.initialisation.radius"
    )
    compose([*chosen, "~model.initialisation.radius"])


def test_class_composes_once_the_left_setting_is_removed() -> None:
    chosen = compose(
        [
            "model/attention=bahdanau",
            f"model.attention._target_={DOT}",
            "~model.attention.size",
            "~model.attention.bias",
            "model.encoder.hidden_size=8",
            "model.decoder.hidden_size=16",
        ]
    )
    assert chosen.config["model"]["attention"] == {"_target_": DOT}


def test_setting_that_the_user_added_is_refused_without_an_origin() -> None:
    changed = ["model/attention=bahdanau", f"model.attention._target_={DOT}"]
    with pytest.raises(ExperimentError) as raised:
        compose([*changed, "+model.attention.n=1"])
    added = [problem for problem in raised.value.problems if ".n is" in problem]
    assert added == ["model.attention.n is not a setting; model.attention has: no settings"]
