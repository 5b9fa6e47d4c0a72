"""What the tests of security share: the entry points, and a mark that foreign code would leave."""

from pathlib import Path

import pytest
from command_fixtures import command, folder, tiny  # noqa: F401 (fixtures)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A folder that a payload makes when it runs; it must never be there."""
    return tmp_path / "pwned"
