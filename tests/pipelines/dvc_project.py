"""A copy of the project with a tiny experiment, and DVC in it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import yaml
from entry_points import ROOT, TINY

PARTS = ("conf", "pipelines", "examples", "dvc.yaml", ".dvcignore", ".gitignore", "params.yaml")
SCREEN_PATIENCE = 60.0  # seconds
STAGES = ["compose", "prepare", "train", "evaluate", "report"]


def copy_of_project(folder: Path) -> Path:
    folder.mkdir()
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "build")
            )
        elif source.is_file():
            shutil.copy(source, folder / name)
    # The sources are dependencies of the stages; what runs is the package as it is installed.
    shutil.copytree(
        ROOT / "src" / "attnlab",
        folder / "src" / "attnlab",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (folder / ".dvc").mkdir()
    for name in ("config", "plots.html"):
        shutil.copy(ROOT / ".dvc" / name, folder / ".dvc" / name)
    choose(folder, overrides=[*TINY[1:], "tracking=none"], data="copy")
    return folder


def choose(folder: Path, **choices: object) -> None:
    file = folder / "params.yaml"
    params = yaml.safe_load(file.read_text(encoding="utf-8"))
    file.write_text(yaml.safe_dump({**params, **choices}, allow_unicode=True), encoding="utf-8")


def dvc(folder: Path, *arguments: str) -> str:
    program = [sys.executable, "-m", "dvc", *arguments]
    ended = subprocess.run(
        program, cwd=folder, env=_environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _environment() -> dict[str, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "GIT_"))
    }
    return environment | {"DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def dvc_on_screen(folder: Path, *arguments: str, columns: int) -> list[str]:
    """The lines of the first screen that DVC's pager, less, shows in a terminal."""
    terminal, ours = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    of_the_terminal = {"TERM": "xterm", "LESSHISTFILE": "-"}
    environment = {
        name: value
        for name, value in _environment().items()
        if name not in ("COLUMNS", "LESS", "PAGER")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "dvc", *arguments],
        cwd=folder,
        env=environment | of_the_terminal,
        stdin=ours,
        stdout=ours,
        stderr=ours,
        start_new_session=True,
    )
    os.close(ours)

    shown = b""
    end = time.monotonic() + SCREEN_PATIENCE
    while b"(END)" not in shown and time.monotonic() < end:
        is_ready, _, _ = select.select([terminal], [], [], 1)
        if is_ready:
            shown += os.read(terminal, 65536)
    os.write(terminal, b"q")
    process.wait(SCREEN_PATIENCE)
    os.close(terminal)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[>=]|\r", "", shown.decode()).splitlines()


def ran(output: str) -> list[str]:
    lines = [line for line in output.splitlines() if line.startswith("Running stage")]
    return [line.split("'")[1] for line in lines]


def hashes(build: Path) -> dict[str, str]:
    files = (path for path in sorted(build.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(build)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def commit(folder: Path) -> None:
    """All that is there, in a repository that is made where there is none."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "as it is"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True, capture_output=True)
