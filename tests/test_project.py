"""The folders of the project, and the command that starts a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.project import (
    COMMAND_VARIABLE,
    CONF,
    PIPELINES,
    STUDIES,
    pipeline_command,
    with_pipeline_commands,
)

ROOT = Path(__file__).resolve().parents[1]
TEXT = "Compare.\n\n    python pipelines/compare.py sweep=last\n\nSee pipelines/studies."


@pytest.fixture(params=["script", "attnlab"])
def started_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv(COMMAND_VARIABLE, raising=False)
    if request.param == "attnlab":
        monkeypatch.setenv(COMMAND_VARIABLE, "attnlab")
    return str(request.param)


def test_folders_of_a_clone_lie_beside_the_sources() -> None:
    assert ROOT / "conf" == CONF
    assert ROOT / "pipelines" == PIPELINES
    assert ROOT / "pipelines" / "studies" == STUDIES


def test_pipeline_command_is_the_one_that_was_used(started_by: str) -> None:
    expected = {"script": "python pipelines/train.py", "attnlab": "attnlab train"}
    assert pipeline_command("train") == expected[started_by]


def test_text_names_the_command_that_was_used(started_by: str) -> None:
    by_attnlab = "Compare.\n\n    attnlab compare sweep=last\n\nSee pipelines/studies."
    expected = {"script": TEXT, "attnlab": by_attnlab}
    assert with_pipeline_commands(TEXT) == expected[started_by]
