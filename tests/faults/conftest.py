"""What the campaigns share: the process whose forks run the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from warmed import Warmed


@pytest.fixture(scope="module")
def warmed() -> Iterator[Warmed]:
    process = Warmed(Path(__file__).resolve().parents[2] / "pipelines")
    yield process
    process.close()
