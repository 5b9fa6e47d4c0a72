"""The models of the course: each is there, one learns, and `attnlab lesson` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import attnlab
from attnlab.commands import main
from attnlab.course import models
from attnlab.course.models import MODELS, known, train
from attnlab.errors import ExperimentError
from attnlab.evaluation.formed_attention import read_formed
from attnlab.experiment.config_sources import groups
from attnlab.explorer.formed import training_of

SHORT = ("training.max_steps=2", "training.validate_every=2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def short_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three models, each trained for two steps."""
    for name in ("dot", "luong", "classifier"):
        monkeypatch.setitem(MODELS, name, (*MODELS[name], *SHORT))


def test_course_has_a_model_of_every_preset_of_a_lesson() -> None:
    presets = {name for name in groups()["experiment"] if name.startswith("lesson/")}
    used = {overrides[0].removeprefix("experiment=") for overrides in MODELS.values()}
    assert used == presets


def test_unknown_model_of_the_course_is_refused_with_all_names() -> None:
    with pytest.raises(ExperimentError, match="the course has no model dott; it has context_once,"):
        known(["dot", "dott"])


@pytest.mark.slow
def test_dot_preset_learns_the_lectures_sentence(folder: Path) -> None:
    model = train("dot", folder / "lessons")
    assert (model.name, model.monitor) == ("dot", "token nll")
    assert model.quality < 0.1
    answer = attnlab.load(model.folder)("I am a student")
    assert answer.text == "je suis étudiant"


@pytest.mark.usefixtures("short_models")
def test_lesson_trains_each_model_once_and_names_the_command_that_opens_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lesson", "dot", "luong", "classifier", "--train-only"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "[1/3] dot", "[2/3] luong", "[3/3] classifier", "explorer",
    ]  # fmt: skip
    assert "token nll" in lines[0]
    assert "accuracy" in lines[2]
    assert lines[3] == "explorer: attnlab lesson dot luong classifier"
    for name in ("dot", "luong", "classifier"):
        assert attnlab.load(folder / "runs" / "lessons" / name) is not None

    assert main(["lesson", "dot", "--train-only"]) == 0
    assert capsys.readouterr().out.startswith("[1/1] dot: trained before, token nll")


@pytest.mark.usefixtures("short_models")
def test_trained_model_shows_how_its_attention_formed(folder: Path) -> None:
    model = train("dot", folder / "lessons", [*SHORT, f"paths.runs={folder / 'runs'}"])
    training = training_of(model.folder)
    assert training is not None
    assert [step for step, _ in read_formed(training, 9)] == [0, 2]


@pytest.mark.usefixtures("short_models")
def test_lesson_opens_one_explorer_with_each_model_and_its_own_sentences(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnlab.explorer import server

    opened: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(server, "explore", lambda names, **more: opened.append((names, more)))
    names = ["dot", "luong", "classifier"]
    assert main(["lesson", *names, "--into", "mine", "--no-browser"]) == 0

    ((folders, more),) = opened
    assert folders == ["mine/dot", "mine/luong", "mine/classifier"]
    assert more["browser"] is False
    assert more["command"] == "attnlab lesson dot luong classifier --into mine"
    corpora = more["data"]
    assert list(corpora) == ["mine/dot", "mine/luong", "mine/classifier"]
    assert corpora["mine/dot"] != corpora["mine/luong"]
    for corpus in corpora.values():
        assert (corpus / "data.json").is_file()


@pytest.mark.usefixtures("short_models")
def test_lesson_shows_what_a_failed_training_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(models.MODELS, "dot", ("experiment=lesson/dot", "model.decoder.layers=2"))
    assert main(["lesson", "dot", "--train-only"]) == 1
    assert "the copy bridge needs equal states" in capsys.readouterr().err
