"""When a study's question was written down: the first commit that has it as it stands."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from attnlab.studies.registration import registration_of

QUESTION = """\
title: Is dot better?
systems: {dot: [], general: []}
expect:
  - {says: dot is better, measure: bleu, more: dot, less: general}
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", *identity, *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, text: str) -> str:
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    git(folder, "add", "mine.yaml")
    git(folder, "commit", "--quiet", "--message", "study")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


def test_registration_is_the_first_commit_with_the_question(project: Path) -> None:
    first = commit(project, QUESTION)
    commit(project, QUESTION + "found: It is.\n")
    commit(project, QUESTION.replace("dot is better", "a dot product is better"))
    found = registration_of(project / "mine.yaml")
    assert found.commit == first
    assert found.is_before(datetime.now(UTC) + timedelta(minutes=1))
    assert not found.is_before(datetime.now(UTC) - timedelta(minutes=1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("more: dot, less: general", "more: general, less: dot"),
        ("less: general}", "less: general, by: 1}"),
        ("{dot: [], general: []}", "{dot: [seed=2], general: []}"),
        ("expect:", "learnt: {bleu: 20}\nexpect:"),
    ],
)
def test_another_question_is_registered_anew(project: Path, old: str, new: str) -> None:
    assert old in QUESTION
    commit(project, QUESTION)
    second = commit(project, QUESTION.replace(old, new))
    assert registration_of(project / "mine.yaml").commit == second
    third = commit(project, QUESTION)
    assert registration_of(project / "mine.yaml").commit == third


def test_question_that_no_commit_has_is_not_registered(project: Path) -> None:
    commit(project, QUESTION)
    (project / "mine.yaml").write_text(
        QUESTION.replace("less: general", "less: 30"), encoding="utf-8"
    )
    found = registration_of(project / "mine.yaml")
    assert found.commit == ""
    assert not found.is_before(datetime.now(UTC))


def test_question_outside_of_git_is_not_registered(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(QUESTION, encoding="utf-8")
    assert registration_of(tmp_path / "mine.yaml").commit == ""
