"""Folders that the stages read and write, and the check that an output replaces only its own kind."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from attnlab.errors import ExperimentError, has_control_character, show
from attnlab.files import check_writable

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


@dataclass(frozen=True)
class Output:
    """A folder as one of the stages writes it.

    what: its kind, as in "a model".
    known_by: a file that every one has, and a pattern of what stands in its first lines.
    files: all that it may have, by relative paths; `*` is a number.
    """

    what: str
    known_by: tuple[str, str]
    files: tuple[str, ...]


_TOKENIZERS = ("source_tokenizer.json", "target_tokenizer.json", "tokenizer.json")
_SPLITS = ("train.arrow", "validation.arrow", "test.arrow")
_PAGE = ("index.html", '<meta name="generator" content="attnlab">')

PREPARED_DATA = Output(
    "prepared data", ("data.json", r'"format": \d'), ("data.json", "stats.json", "lengths.png", *_TOKENIZERS, *_SPLITS)
)
MODEL = Output(
    "a model",
    ("model.json", '"identity"'),
    ("model.json", "config.json", "data.json", "weights.safetensors", *_TOKENIZERS),
)
LEARNING_CURVES = Output("learning curves", ("history.csv", "step,epoch,name,value"), ("history.csv",))
EVALUATION = Output(
    "an evaluation",
    ("attention.npz", r"\APK"),
    (
        "metrics.json", "signatures.json", "attention.npz",
        "hypotheses.jsonl", "by_length.json", "alignment_offsets.json", "wrong_links.json",
        "predictions.jsonl", "confusions.json", "confusion_matrix.png", "sentences.png", "sentences.html",
    ),
)  # fmt: skip
REPORT = Output(
    "a report",
    _PAGE,
    ("index.html", *(f"pictures/{name}.png" for name in ("curves", "attention_*", "confusion_matrix", "sentences"))),
)
COMPARISON = Output(
    "a comparison",
    _PAGE,
    (
        "index.html", "comparison.csv", "systems.csv", "comparison.md",
        "systems.png", "learning.png", "length.png", "cost.png",
    ),
)  # fmt: skip


def check_replaceable(place: str, folder: Path, output: Output) -> None:
    """Raise ExperimentError where writing to a folder would remove what is no earlier output of the same kind.

    place: the setting that names the folder.
    """
    if folder.exists() and not folder.is_dir():
        raise ExperimentError(f"{place}: {folder} is a file; name a folder")
    check_writable(place, folder.parent if folder.exists() else folder)
    if not folder.is_dir():
        return
    other = next((name for name in _files(folder) if not any(_is_named(name, own) for own in output.files)), None)
    if other is None and any(folder.iterdir()) and not _is_ours(folder, *output.known_by):
        other = next(_files(folder), "folders alone")
    if other is not None:
        raise ExperimentError(
            f"{place}: {folder} holds something else than {output.what} ({other}), which would be lost; "
            f"name another folder, or empty it"
        )


def _files(folder: Path) -> Iterator[str]:
    """One by one, for it may be the root of all."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return (path.relative_to(folder).as_posix() for path in paths)


def _is_named(name: str, own: str) -> bool:
    return re.fullmatch(re.escape(own).replace(r"\*", r"\d+"), name) is not None


def _is_ours(folder: Path, name: str, pattern: str) -> bool:
    try:
        with (folder / name).open(encoding="utf-8", errors="replace") as file:
            return re.search(pattern, file.read(4_000)) is not None
    except OSError:
        return False
