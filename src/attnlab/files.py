"""Files and folders: paths of the config, atomic writes, JSON read with clear errors.

Content reaches the disk before its rename does: a rename may survive a power failure that the
content did not.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from attnlab.errors import ExperimentError

RecordT = TypeVar("RecordT")
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}  # by the kinds of records that were read


def resolve_path(path: str) -> Path:
    """The absolute path of a path in the config, which counts from the current folder.

    For a job, that is the folder in which its command was started.
    """
    return Path(os.path.expanduser(path)).resolve()


def project_path(path: str | Path) -> Path:
    """The absolute path of a path that counts from the project.

    DVC's queue works in temporary copies of it; there, a relative path starts at $DVC_ROOT.
    """
    return Path(os.environ.get("DVC_ROOT") or Path.cwd(), path)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that takes the place of `path` when the block ends.

    It lies near `path`, and is removed if the block fails. A process that is killed leaves
    `.<name>.<random>` beside `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f".{path.name}.", dir=path.parent, ignore_cleanup_errors=True
    ) as place:
        new, old = Path(place, "new"), Path(place, "old")
        new.mkdir()
        yield new
        for inside, _, names in os.walk(new):
            for name in names:
                sync(Path(inside, name))
            sync(Path(inside))
        if path.exists():
            os.replace(path, old)
        try:
            os.replace(new, path)
        except BaseException:
            if old.exists():
                os.replace(old, path)
            raise
        sync(path.parent)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary file name beside `path` that takes its place when the block ends.

    The file is removed if the block fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays: writers such as matplotlib choose the format by it.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_own_record(path: Path, kind: type[RecordT], remedy: str) -> RecordT:
    """The content of a JSON file that this program wrote.

    kind: a dataclass, or the type of a plain value such as `dict[str, Any]`.
    remedy: what to do where the file is damaged.

    Raises ExperimentError where the file cannot be read, or holds something else.
    """
    try:
        record: RecordT = _adapter(kind).validate_json(path.read_bytes())
        return record
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}; {remedy}") from error
    except ValidationError as error:
        first = error.errors()[0]
        reason = ": ".join([*map(str, first["loc"]), first["msg"]])
    raise ExperimentError(f"{path} is damaged ({reason}); {remedy}")


def _adapter(kind: Any) -> TypeAdapter[Any]:
    # It takes hundreds of times as long to make as to read one record with it.
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def write_json(path: Path, content: Any) -> None:
    """Write content as JSON with sorted keys, whole or not at all.

    Numbers that are not finite become null.
    """
    text = json.dumps(
        finite(content), ensure_ascii=False, indent=2, sort_keys=True, allow_nan=False
    )
    with atomic_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8", newline="\n")


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one line of JSON for each row; see `write_json`."""
    with (
        atomic_file(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as lines,
    ):
        for row in rows:
            lines.write(
                json.dumps(finite(dict(row)), ensure_ascii=False, sort_keys=True, allow_nan=False)
                + "\n"
            )


def finite(content: Any) -> Any:
    """JSON has no NaN and no infinity (a perplexity can overflow)."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
