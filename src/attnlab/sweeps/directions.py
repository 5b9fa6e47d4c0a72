"""Which way a sweep's objectives are better: for the config of Optuna's sweeper, as `${directions:...}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Direction = Literal["minimize", "maximize"]


def directions(objectives: Sequence[str], monitor: str) -> list[Direction]:
    """One for each objective (see `settings.Sweep`); `quality` is what training monitors."""
    quality: Direction = "minimize" if monitor.endswith("nll") else "maximize"
    return [quality if objective == "quality" else "minimize" for objective in objectives]
