"""The command line of compare.py: conf/compare.yaml, with what was given instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from attnlab.errors import ExperimentError
from attnlab.experiment.composed import CONF
from attnlab.experiment.settings_file import settings_of

if TYPE_CHECKING:
    from attnlab.tracking.settings import Tracking

WAYS = ("sweep", "runs", "filter", "builds")
# Taken letter by letter: an identity may look like a number, and a filter has spaces and quotes.
AS_WRITTEN = ("sweep", "filter", "metric", "baseline", "into")
FILE = CONF / "compare.yaml"


@dataclass(frozen=True)
class CompareSettings:
    """What conf/compare.yaml says. Of sweep, runs, filter and builds one is there."""

    sweep: str | None
    runs: list[str] | None
    filter: str | None
    builds: list[str] | None
    metric: str | None
    baseline: str | None
    samples: int
    confidence: float
    seed: int
    sentences: int
    into: str | None
    paths: dict[Literal["runs"], str]
    tracking: Tracking

    @property
    def runs_folder(self) -> Path:
        from attnlab.config.paths import runs_folder

        return runs_folder(self.paths["runs"])


def read_settings(arguments: Sequence[str]) -> CompareSettings:
    """`key=value` arguments, bound to what each setting must be; raises ExperimentError with every problem."""
    from pydantic import Field

    from attnlab.config.binding import bind_sections
    from attnlab.config.paths import NotEmpty
    from attnlab.tracking.settings import Tracking

    annotations: dict[str, Any] = {
        "sweep": NotEmpty | None,
        "runs": Annotated[list[NotEmpty], Field(min_length=1)] | None,
        "filter": NotEmpty | None,
        "builds": Annotated[list[NotEmpty], Field(min_length=1)] | None,
        "metric": NotEmpty | None,
        "baseline": NotEmpty | None,
        "samples": Annotated[int, Field(ge=100, le=100_000)],
        "confidence": Annotated[float, Field(ge=0.5, lt=1)],
        "seed": Annotated[int, Field(ge=0, lt=2**32)],
        "sentences": Annotated[int, Field(ge=0)],
        "into": NotEmpty | None,
        "paths": dict[Literal["runs"], NotEmpty],
        "tracking": Tracking,
    }
    settings = CompareSettings(**bind_sections(settings_of(FILE, arguments, AS_WRITTEN), annotations))
    given = [way for way in WAYS if getattr(settings, way) is not None]
    if len(given) != 1:
        told = " and ".join(given) or "none of them"
        raise ExperimentError(f"give exactly one of {', '.join(WAYS)}, such as sweep=last; got {told}")
    return settings
