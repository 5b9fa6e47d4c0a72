"""A dataset of the hub, or a folder in its layout, may come from anybody: it may name its own files, of known kinds.

`datasets` itself runs no script of a folder and reads no pickle. But it follows the metadata of a folder to any address
and to any file of this machine, and it has readers for kinds of data that nobody needs here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
from huggingface_hub import DatasetCard

from attnlab.data.file_faults import READERS
from attnlab.errors import ExperimentError, show
from attnlab.files import parse_yaml

_CARD, _SETTINGS = "README.md", ".huggingface.yaml"
# Of the settings of a configuration those that hold marks of punctuation; any other text may be a place.
_MARKS = {"sep", "delimiter", "quotechar", "escapechar", "decimal", "thousands", "comment", "description"}


def check_metadata(folder: Path) -> None:
    """Raise ExperimentError where a folder's metadata lead to the network or to files beside the folder."""
    for name in (_CARD, _SETTINGS):
        if (folder / name).is_file():
            for text in _places(folder / name):
                if not _is_inside(text):
                    raise ExperimentError(
                        f"data.path: {folder / name} must name files inside the folder, got {text!r}; copy what is "
                        "wanted into the folder"
                    )


def check_builder(folder: Path, builder: datasets.DatasetBuilder) -> None:
    """Raise ExperimentError where `datasets` would read a folder by another reader than those of the known kinds."""
    _check_kind(f"data.path: {folder}", builder)


def check_hub_builder(dataset: str, builder: datasets.DatasetBuilder) -> None:
    """Raise ExperimentError where the metadata of a dataset of the hub lead to files that do not lie on the hub.

    To be asked before the builder reads anything: its files are found by then.
    """
    if type(builder).__module__.rpartition(".")[2] == "cache":
        return  # it was loaded before, and lies in the local cache now
    _check_kind(f"data.dataset: {dataset}", builder)
    for files in (builder.config.data_files or {}).values():
        for file in files:
            # A member of an archive is written before it: zip://a.csv::hf://...
            if not str(file).rpartition("::")[2].startswith("hf://"):
                raise ExperimentError(
                    f"data.dataset: the metadata of {dataset} lead to {show(str(file))}, which is not on the hub; "
                    "choose another dataset, or give data.path a copy of its files"
                )


def _check_kind(where: str, builder: datasets.DatasetBuilder) -> None:
    kind = type(builder).__module__.rpartition(".")[2]
    if kind not in READERS.values():
        raise ExperimentError(
            f"{where} holds files of the kind {kind}; known kinds are: {', '.join(READERS)}, each also with .gz"
        )


def _places(file: Path) -> list[str]:
    """All that a folder's metadata could have files read from."""
    try:
        if file.name == _CARD:
            found = DatasetCard.load(file, ignore_metadata_errors=True).data.to_dict()
        else:
            found = parse_yaml(file.read_text(encoding="utf-8"))
        return list(_texts(found.get("configs"))) if isinstance(found, dict) else []
    except Exception as error:  # yaml's and the card's own stumble over many things, each in its way
        reason = " ".join(str(error).split())
        raise ExperimentError(f"data.path: the metadata of {file} cannot be read: {reason}; correct them") from error


def _is_inside(text: str) -> bool:
    """Whether it is a plain relative path or pattern: `file:/x` and `simplecache::/x` are addresses too."""
    return not any(mark in text for mark in ":\\\0") and text[:1] not in ("/", "~") and ".." not in Path(text).parts


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in _MARKS:
                yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)
    elif isinstance(node, str):
        yield node
