"""What a run's tags say of the code that ran."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from attnlab.tracking.origin import git_tags


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A package in a checkout without changes."""
    code = tmp_path / "src" / "package"
    code.mkdir(parents=True)
    (code / "module.py").write_text("")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    return code


def test_git_dirty_does_not_count_the_lock_files_of_dvc(code: Path, tmp_path: Path) -> None:
    (tmp_path / "attentions").mkdir()
    for lock in (tmp_path / "dvc.lock", tmp_path / "attentions" / "dvc.lock"):
        lock.write_text("schema: '2.0'")
    assert git_tags(code)["git_dirty"] == "false"


@pytest.mark.parametrize("changed", ["params.yaml", "src/package/module.py"])
def test_git_dirty_counts_other_changes(code: Path, tmp_path: Path, changed: str) -> None:
    (tmp_path / changed).write_text("x = 1")
    assert git_tags(code)["git_dirty"] == "true"
