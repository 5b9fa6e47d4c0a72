"""A payload that leaves a mark when it runs."""

from __future__ import annotations

import os
from pathlib import Path


class Payload:
    """Unpickling it makes a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)
