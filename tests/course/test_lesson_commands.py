"""The commands of the lessons: every experiment composes, and runs for a few steps."""

from __future__ import annotations

import itertools
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.api import compose
from attnlab.course.check import check

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "run_course.py"
COURSE = runpy.run_path(str(SCRIPT))
PAGES = COURSE["pages"]()
TRAININGS = [
    (page.stem, command)
    for page in PAGES
    for command in COURSE["commands_of"](page)
    if command.startswith("python pipelines/train.py ")
]


def points(command: str) -> list[list[str]]:
    """The overrides of each point of a training or sweep, the seeds left out."""
    words = [word for word in shlex.split(command)[2:] if word != "-m"]
    choices = []
    for word in words:
        key, _, values = word.partition("=")
        if key != "seed":
            choices.append([f"{key}={value}" for value in values.split(",")])
    return [[*point] for point in itertools.product(*choices)]


def test_every_lesson_has_a_training():
    assert {lesson for lesson, _ in TRAININGS} == {page.stem for page in PAGES}
    assert len(PAGES) == 12


@pytest.mark.parametrize(
    ("lesson", "overrides"),
    [(lesson, point) for lesson, command in TRAININGS for point in points(command)],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_experiment_of_a_lesson_composes(lesson, overrides):
    compose(overrides)


def test_shortened_command_has_few_steps_and_one_seed():
    command = "python pipelines/train.py -m experiment=a,b seed=1,2,3"
    assert COURSE["shortened"](command, 2) == (
        "python pipelines/train.py -m experiment=a,b seed=1 training.max_steps=2"
    )
    assert COURSE["shortened"]("python pipelines/compare.py sweep=last", 2).endswith("sweep=last")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """What the commands need of the project's folder, and no runs."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("conf", "pipelines"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "runs").mkdir()
    shutil.copy(empty_database, folder / "runs" / "mlflow.db")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=() if page == PAGES[2] else pytest.mark.long)
        for page in PAGES
    ],
)
def test_commands_of_a_lesson_run(page, clone, warm_python, monkeypatch, capfd):
    monkeypatch.setitem(COURSE["main"].__globals__, "ROOT", clone)
    monkeypatch.setattr(sys, "executable", str(warm_python))  # and the `attnlab` beside it
    monkeypatch.setenv("WARM_PYTHON_BLANK_PICTURES", "1")
    try:
        COURSE["main"](["--steps", "2", page.name[:2]])
    except subprocess.CalledProcessError as failed:
        printed = capfd.readouterr()
        raise AssertionError(printed.out[-3000:] + printed.err[-3000:]) from failed
    assert f"{page.stem}: " in capfd.readouterr().out


@pytest.mark.parametrize(
    ("lesson", "settings", "says"),
    [
        ("lesson-9", ["padding=pre_post", "padding.recurrence=read"], []),
        ("lesson-9", ["padding.attention_masked=true", "padding.encoder=pre"], []),
        (
            "lesson-9",
            ["padding=post_post"],
            ["must stand in front", "do not change the encoder's states"],
        ),
        ("lesson-9", ["padding=post_post", "padding.recurrence=read"], ["must stand in front"]),
        ("lesson-9", [], ["get a weight of"]),
        ("lesson-9", ["padding=pre_post"], ["do not change the encoder's states"]),
        ("lesson-9", ["padding=nonsense"], ["nonsense"]),
        (
            "lesson-11",
            [
                "training/teacher_forcing=inverse_sigmoid",
                "training.teacher_forcing.k=80",
                "training.teacher_forcing.coin=sequence",
            ],
            [],
        ),
        (
            "lesson-11",
            [
                "training/teacher_forcing=linear",
                "training.teacher_forcing.start=1",
                "training.teacher_forcing.end=0",
                "training.teacher_forcing.slope=0.002",
                "training.teacher_forcing.coin=sequence",
            ],
            [],
        ),
        (
            "lesson-11",
            ["training.teacher_forcing.ratio=0.5"],
            ["ratio of the first step is 0.50", "ratio at step 600 is 0.50", "for each token"],
        ),
    ],
)
def test_settings_are_measured(tmp_path, lesson, settings, says):
    file = tmp_path / "mine.yaml"
    file.write_text("".join(f"- {line}\n" for line in settings) or "[]\n", "utf-8")
    found = check(lesson, file)
    assert len(found) == len(says)
    for sentence, words in zip(found, says, strict=True):
        assert words in sentence.en


def test_coin_of_a_missed_goal_is_named_in_korean(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("- training.teacher_forcing.coin=batch\n", "utf-8")
    found = " ".join(sentence.ko for sentence in check("lesson-11", file))
    assert "동전을 배치마다" in found
