"""What a shell is offered to go on with, which it expands: no command that stands in somebody's config."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from entry_points import PIPELINES, Command

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
TRAIN = PIPELINES / "train.py"
# A blank would part the word.
COMMAND = "$(mkdir$IFS{mark})"


def completed(command: Command, conf: Path, line: str, shell: pytest.MonkeyPatch) -> list[str]:
    shell.setenv("COMP_LINE", line)
    shell.setenv("COMP_POINT", str(len(line)))
    ended = command("train.py", "--config-dir", str(conf), "-sc", "query=bash")
    assert ended.code == 0, ended.err
    return ended.out.split()


@pytest.fixture
def theirs(folder: Path, mark: Path) -> Path:
    """Configs with a command as a key, as a value, and as the name of a file."""
    payload = COMMAND.format(mark=mark)
    place = folder / "theirs" / "experiment"
    place.mkdir(parents=True)
    (place / "theirs.yaml").write_text(
        f"# @package _global_\n'{payload}': 1\ntracking: {{run_name: '{payload}'}}\nother: {{plain: 한글.1}}\n"
    )
    (place / 'a$(mkdir$IFS"pwned").yaml').write_text("# @package _global_\n")
    return place.parent


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("experiment=theirs ", "other."), ("experiment=theirs tracking.run_name=", None),
        ("experiment=", "experiment=theirs"), ("experiment=theirs other.plain=", "other.plain=한글.1"),
        ("model/attention=", "model/attention=dot"),
    ],
)  # fmt: skip
def test_a_shell_is_offered_plain_words_alone(
    command: Command, theirs: Path, mark: Path, monkeypatch: pytest.MonkeyPatch, typed: str, offered: str | None
) -> None:
    words = completed(command, theirs, f"python {TRAIN} {typed}", monkeypatch)
    assert offered is None or offered in words
    assert not any(character in word for word in words for character in "$`(){}*<>\\'\"")
    subprocess.run(["bash", "-c", 'compgen -W "$1" >/dev/null', "bash", " ".join(words)], cwd=theirs, check=False)
    assert not mark.exists()
    assert not (theirs / "pwned").exists()


def test_what_a_shell_would_do_with_others(folder: Path, mark: Path) -> None:
    word = COMMAND.format(mark=mark)
    subprocess.run(["bash", "-c", 'compgen -W "$1" >/dev/null', "bash", word], cwd=folder, check=False)
    assert mark.exists()
