"""Where a run comes from: the code's revision, the machine, the versions."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

import attnlab
from attnlab.config.identity import PACKAGE_ROOT

_PACKAGES = ("torch", "pytorch-lightning", "mlflow", "numpy", "tokenizers", "datasets")


def origin_tags() -> dict[str, str]:
    """Tags that say which code ran, on what."""
    tags = {
        **git_tags(PACKAGE_ROOT),
        "host": platform.node(),
        "platform": platform.platform(),
        "threads": str(torch.get_num_threads()),
        "version.python": platform.python_version(),
        "version.attnlab": attnlab.__version__,
        "mlflow.source.type": "LOCAL",
        "mlflow.source.name": Path(sys.argv[0]).name or "python",
    }
    for package in _PACKAGES:
        try:
            tags[f"version.{package}"] = version(package)
        except PackageNotFoundError:
            continue
    try:
        tags["mlflow.user"] = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        tags["mlflow.user"] = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return tags


def git_tags(code: Path) -> dict[str, str]:
    """The revision of the checkout that `code` belongs to, and whether the checkout differs from it.

    DVC's lock files do not count: DVC writes them while the stages run.
    A folder that merely lies inside a repository (an unpacked archive, an installed package) belongs to none.
    """
    belongs = _git(code, "ls-files", "--error-unmatch", ".") is not None
    revision = _git(code, "rev-parse", "HEAD") if belongs else None
    if revision is None:
        return {"git_revision": "none: not a git checkout", "git_dirty": "unknown"}
    changes = _git(code, "status", "--porcelain", "--untracked-files=normal", ":/", ":(top,exclude,glob)**/dvc.lock")
    return {
        "git_revision": revision,
        "git_dirty": "unknown" if changes is None else "true" if changes else "false",
        "mlflow.source.git.commit": revision,
    }


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, None where there is no git or it fails."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=environment, capture_output=True, text=True, errors="replace", timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
