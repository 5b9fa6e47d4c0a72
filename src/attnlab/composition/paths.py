"""Where the stages read and write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from attnlab.composition.shown import has_control_character, show

NotEmpty = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class Paths:
    """Folders; null leaves a stage's output in its usual place under `runs`. No output lies in another.

    ensemble: model folders that are evaluated together with the model, as one.
    """

    runs: NotEmpty
    data: NotEmpty | None
    model: NotEmpty | None
    ensemble: list[NotEmpty] | None
    training: NotEmpty | None
    evaluation: NotEmpty | None
    report: NotEmpty | None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            for path in value if isinstance(value, list) else [value]:
                if path is not None and has_control_character(path):
                    raise ValueError(f"{name} must be on one line, without control characters; got {show(path)}")
        if self.runs.startswith("~"):
            # Hydra makes its folders under it, and would make one that is called so.
            raise ValueError(f"runs must be written out, got {show(self.runs)}; give {show(str(_place(self.runs)))}")
        # Where a folder is written anew, what lies within it goes.
        outputs = ("data", "model", "training", "evaluation", "report")
        places = {name: _place(path) for name in ("runs", *outputs) if (path := getattr(self, name)) is not None}
        for name, inside in places.items():
            for other in outputs:
                if other != name and other in places and inside.is_relative_to(places[other]):
                    raise ValueError(
                        f"{name} must not lie in paths.{other}, got {show(inside)} and {show(places[other])}"
                    )

    @property
    def runs_folder(self) -> Path:
        return runs_folder(self.runs)


def _place(path: str) -> Path:
    return Path(os.path.expanduser(path)).resolve()


def runs_folder(runs: str) -> Path:
    """`paths.runs`, resolved against the project even where DVC works in a temporary copy of it."""
    return Path(os.environ.get("DVC_ROOT", "."), runs).resolve()
