"""Where the stages read and write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paths:
    """Folders; null leaves a stage's output in its usual place under `runs`."""

    runs: str
    data: str | None
    model: str | None
    training: str | None
    evaluation: str | None
    report: str | None

    @property
    def runs_folder(self) -> Path:
        """`runs`, resolved against the project even where DVC works in a temporary copy of it."""
        return Path(os.environ.get("DVC_ROOT", "."), self.runs).resolve()
