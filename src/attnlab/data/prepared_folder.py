"""What reading a prepared folder takes, whatever kind of data is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from attnlab.data.corpus import SPLITS
from attnlab.errors import ExperimentError
from attnlab.files import read_json

T = TypeVar("T")


class PreparedFolder:
    """A folder with `data.json`, `stats.json`, an Arrow file for each split and what else `files` names.

    facts, stats: the contents of the two JSON files.

    Raises ExperimentError where a file is missing or where the folder was prepared in another format.
    """

    def __init__(self, path: Path, files: Sequence[str], version: int) -> None:
        self.path, self._files = Path(path), sorted(files)
        # The format first: a folder in another one may have other files.
        self.facts = self.json("data.json") if (self.path / "data.json").is_file() else {"format": version}
        if self.facts.get("format") != version:
            raise ExperimentError(
                f"{self.path} was prepared in format {self.facts.get('format')}, this version reads {version}; "
                "run the prepare stage again"
            )
        missing = [name for name in self._files if not (self.path / name).is_file()]
        if missing:
            raise ExperimentError(f"{self.path} is no prepared data: {', '.join(missing)} missing; prepare it again")
        self.stats = self.json("stats.json")

    def facts_as(self, kind: type[T]) -> T:
        """What `data.json` says; raises ValueError where a `kind` is something else."""
        return TypeAdapter(kind).validate_json(dumps(self.facts), strict=True)

    def json(self, name: str) -> dict[str, Any]:
        file = self.path / name
        try:
            found = read_json(file)
        except (ValueError, OSError) as error:
            raise unreadable(file, error) from error
        if not isinstance(found, dict):
            raise unreadable(file, TypeError(f"it must hold an object, got {type(found).__name__}"))
        return found

    def rows_file(self, split: str) -> Path:
        """The file of a split that must be one of `SPLITS`."""
        if split not in SPLITS:
            raise ValueError(f"the split must be one of {', '.join(SPLITS)}, got {split}")
        return self.path / f"{split}.arrow"

    @property
    def digest(self) -> str:
        """sha256 over the names and bytes of the folder's files; read anew each time."""
        digest = hashlib.sha256()
        for name in self._files:
            with (self.path / name).open("rb") as file:
                digest.update(f"{name}:{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return digest.hexdigest()


def longest_sources(stats: dict[str, Any], side: str) -> dict[str, int]:
    """By split the tokens of the longest source; raises ValueError, KeyError or TypeError where the stats are none."""
    longest = {split: stats["splits"][split][side]["max_length"] for split in SPLITS}
    if not all(isinstance(length, int) and length >= 0 for length in longest.values()):
        raise ValueError(f"a longest {side} must be a whole number")
    return longest


def first_fault(error: Exception) -> str:
    """What a validation complains of first, with its place; of any other error all that it says."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return ": ".join([".".join(map(str, first["loc"])), first["msg"]] if first["loc"] else [first["msg"]])


def incomplete(folder: Path, error: Exception) -> ExperimentError:
    return ExperimentError(f"{folder} is incomplete ({first_fault(error)}); run the prepare stage again")


def unreadable(file: Path, error: Exception) -> ExperimentError:
    return ExperimentError(f"{file} cannot be read ({error}); run the prepare stage again")
