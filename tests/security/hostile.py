"""Payloads that leave a mark when they run, and the check that none did."""

from __future__ import annotations

import os
from pathlib import Path

from entry_points import Ended


class Payload:
    """Unpickling it makes a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def assert_nothing_ran(ended: Ended, mark: Path, *said: str) -> None:
    """The command was refused in sentences, and the mark is not there."""
    assert not mark.exists()
    assert ended.code not in (0, None)
    assert "Traceback" not in ended.err
    for sentence in said:
        assert sentence in ended.err, ended.err
    lines = ended.err.strip().splitlines()
    assert lines
    assert all(line.startswith("error: ") for line in lines), ended.err
