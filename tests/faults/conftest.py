"""What the tests of faults share: commands in a process that is warm already."""

from __future__ import annotations

import pytest
from command_fixtures import command, folder  # noqa: F401 (fixtures)
from warmed import Warmed


@pytest.fixture(scope="session")
def warmed() -> Warmed:
    return Warmed()
