"""A copy of the project with a tiny experiment, and DVC in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from entry_points import ROOT, TINY

PARTS = ("conf", "pipelines", "examples", "dvc.yaml", ".dvcignore", ".gitignore", "params.yaml")
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
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "GIT_"))
    }
    environment |= {"DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    program = [sys.executable, "-m", "dvc", *arguments]
    ended = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


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
