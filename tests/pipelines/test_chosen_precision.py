"""hardware.precision through the real command."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from entry_points import TINY, Command, succeeded


@pytest.mark.processor
@pytest.mark.parametrize(
    ("there", "precision"),
    [(False, 32), pytest.param(True, "bf16", marks=pytest.mark.bfloat16)],
    ids=str,
)
def test_auto_is_recorded_as_the_precision_that_it_chose(
    there: bool, precision: object, command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The precision is recorded in the model folder and in the identity.

    Giving bf16 or 32 instead is the same experiment.
    """
    monkeypatch.setattr("attnlab.training.hardware.cpu_has_bfloat16", lambda: there)
    arguments = (*TINY, "model/encoder=lstm", "tracking=none", "chain=false")
    succeeded(command("train.py", *arguments, "hardware.precision=auto"))
    (config,) = (folder / "runs/points").glob("*/model/config.json")
    assert json.loads(config.read_text())["hardware"]["precision"] == precision
    again = command("train.py", *arguments, f"hardware.precision={precision}")
    assert "is finished already" in again.err


@pytest.mark.processor
def test_compose_writes_the_precision_that_auto_chose(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.training.hardware.cpu_has_bfloat16", lambda: False)
    (folder / "params.yaml").write_text("overrides: [hardware.precision=auto]\n")
    succeeded(command("compose.py"))
    assert (
        yaml.safe_load((folder / "build/resolved.yaml").read_text())["hardware"]["precision"] == 32
    )


@pytest.mark.processor
@pytest.mark.parametrize("precision", [32, "bf16"])
def test_evaluation_in_another_precision_is_a_run_of_its_own(
    precision: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its figures differ from those of the training's run.

    The params of that run name the precision that it was trained in.
    """
    from attnlab.experiment import evaluation, run

    search = {"_target_": "attnlab.search.greedy.GreedySearch", "max_length": 8}
    trained = {"search": search, "hardware": {"precision": 32}, "data": {"seed": 1}}
    for module in (evaluation, run):
        monkeypatch.setattr(module, "read_config", lambda _: dict(trained))
        monkeypatch.setattr(module, "read_facts", lambda _: SimpleNamespace(identity="0123"))
    experiment: Any = SimpleNamespace(
        config={"search": search},
        ensemble_folders=[],
        hardware=SimpleNamespace(precision=precision),
        paths=SimpleNamespace(runs_folder=tmp_path),
    )
    of_training = tmp_path / "points" / "0123"
    assert (run.run_folder_of_evaluation(experiment, tmp_path) == of_training) == (precision == 32)
    assert evaluation.name_of_run(experiment, tmp_path).endswith(" · precision bf16") == (
        precision == "bf16"
    )
