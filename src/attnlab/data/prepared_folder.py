"""What reading a prepared folder takes, whatever kind of data is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnlab.composition.error import ExperimentError
from attnlab.composition.json_file import read_json
from attnlab.data.corpus import SPLITS


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

    def json(self, name: str) -> dict[str, Any]:
        file = self.path / name
        try:
            found = read_json(file)
        except ValueError as error:
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


def unreadable(file: Path, error: Exception) -> ExperimentError:
    return ExperimentError(f"{file} cannot be read ({error}); run the prepare stage again")
