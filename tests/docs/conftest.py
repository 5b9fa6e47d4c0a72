"""The docs site, built once for all tests and workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; the build fails at every warning."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "site"
    with FileLock(shared / "site.lock"):
        if not folder.exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
            built = subprocess.run(
                [*command, "--site-dir", str(folder)], cwd=ROOT, capture_output=True, text=True
            )
            assert built.returncode == 0, built.stdout + built.stderr
    return folder
