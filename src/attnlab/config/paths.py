"""Folders that the stages read and write, and the check that an output replaces only an earlier one of its kind."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from attnlab.errors import ExperimentError, show

NotEmpty = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class Paths:
    """Folders; null leaves a stage's output in its usual place under `runs`. No output lies in another.

    runs: experiments, prepared data and MLflow's database.
    data: prepared data; all experiments on the same data share those under `runs`.
    model: the model folder.
    ensemble: model folders that are evaluated together with the model, as one.
    training: learning curves.
    evaluation: metrics, hypotheses and attention.
    report: the page with the figures.
    """

    runs: NotEmpty
    data: NotEmpty | None
    model: NotEmpty | None
    ensemble: list[NotEmpty] | None
    training: NotEmpty | None
    evaluation: NotEmpty | None
    report: NotEmpty | None

    def __post_init__(self) -> None:
        if self.runs.startswith("~"):  # Hydra would make a folder that is called so
            raise ValueError(f"runs must be an absolute or relative path without ~, got {show(self.runs)}")
        # Where a folder is written anew, what lies within it goes.
        outputs = ("data", "model", "training", "evaluation", "report")
        given = {name: getattr(self, name) for name in ("runs", *outputs)}
        places = {name: Path(path).expanduser().resolve() for name, path in given.items() if path is not None}
        for name, inside in places.items():
            for other in places.keys() - {name, "runs"}:
                if inside.is_relative_to(places[other]):
                    raise ValueError(
                        f"{name} must not lie in paths.{other}, got {show(str(inside))} and {show(str(places[other]))}"
                    )

    @property
    def runs_folder(self) -> Path:
        return runs_folder(self.runs)


def runs_folder(runs: str) -> Path:
    """`paths.runs`, resolved against the project even where DVC works in a temporary copy of it."""
    return Path(os.environ.get("DVC_ROOT", "."), runs).resolve()


@dataclass(frozen=True)
class Output:
    """A folder as one of the stages writes it.

    what: its kind, as in "a model".
    known_by: a file that every one has, and an expression for its first lines.
    suffixes: of all its files.
    """

    what: str
    known_by: tuple[str, str]
    suffixes: str


_PAGE = ("index.html", '<meta name="generator" content="attnlab">')

PREPARED_DATA = Output("prepared data", ("data.json", r'"format": \d'), ".json .arrow")
MODEL = Output("a model", ("model.json", '"identity"'), ".json .safetensors")
LEARNING_CURVES = Output("learning curves", ("history.csv", "step,epoch,name,value"), ".csv")
EVALUATION = Output("an evaluation", ("attention.npz", r"\APK"), ".json .jsonl .npz .png .html")
REPORT = Output("a report", _PAGE, ".html .png")
COMPARISON = Output("a comparison", _PAGE, ".html .csv .md .png")


def check_replaceable(place: str, folder: Path, output: Output) -> None:
    """Raise ExperimentError where writing to a folder would remove what is no earlier output of the same kind.

    place: the setting that names the folder.
    """
    if folder.is_file():
        raise ExperimentError(f"{place}: {folder} is a file; name a folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    name, pattern = output.known_by
    known = (folder / name).is_file() and re.search(pattern, (folder / name).read_text("utf-8", "replace")[:4_000])
    files = [path for path in folder.rglob("*") if path.is_file()]
    other = next((path.name for path in files if path.suffix not in output.suffixes.split()), None)
    if not known or other:
        raise ExperimentError(
            f"{place}: {folder} holds something else than {output.what}{f' ({other})' if other else ''}, which would "
            f"be lost; name another folder, or empty it"
        )
