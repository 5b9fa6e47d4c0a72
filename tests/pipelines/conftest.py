"""What the tests of the entry points share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_fixtures import command, database, folder, tiny  # noqa: F401 (fixtures)

PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def warm_path(warm_python: Path) -> Iterator[None]:
    """DVC runs the first `python` of PATH: one that starts at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{warm_python.parent}:{PROGRAMS}:{os.environ['PATH']}")
        yield
