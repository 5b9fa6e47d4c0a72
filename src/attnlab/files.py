"""Files and folders: written whole or not at all, JSON read with clear errors.

Content reaches the disk before its rename does: a rename may survive a power failure that the content did not.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
from pydantic import TypeAdapter, ValidationError

from attnlab.errors import ExperimentError

_MACHINE = re.sub(r"[^A-Za-z0-9-]", "-", platform.node())[:30]
_OLD = "old-"  # in the name of a temporary folder that holds the one to be replaced
RecordT = TypeVar("RecordT")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place when the block ends, and vanishes when it fails."""
    _remove_leftovers(path)
    temporary = Path(tempfile.mkdtemp(prefix=_prefix(path), dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o755)  # mkdtemp's 0700 would keep a folder's readers out
        for inside, _, names in os.walk(temporary):
            for name in names:
                sync(Path(inside, name))
            sync(Path(inside))
        if path.exists():
            _replace_folder(path, temporary)
        else:
            os.replace(temporary, path)
        sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace_folder(path: Path, new: Path) -> None:
    """Put `new` in the place of `path`, which stays where it cannot be moved, as a mounted one."""
    old = Path(tempfile.mkdtemp(prefix=_prefix(path) + _OLD, dir=path.parent))
    try:
        os.replace(path, old / path.name)
        os.replace(new, path)
    except BaseException:
        if not path.exists():
            os.replace(old / path.name, path)
        with suppress(OSError):  # where even that failed, it is not empty and must stay
            old.rmdir()
        raise
    shutil.rmtree(old)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary file name beside `path` that takes its place when the block ends, and vanishes when it fails."""
    _remove_leftovers(path)
    # The suffix stays: writers such as matplotlib choose the format by it.
    temporary = path.with_name(f"{_prefix(path)}x{path.suffix}")
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


def _prefix(path: Path) -> str:
    """How the name of something temporary for `path` starts: with the machine and the process that write it."""
    return f".{path.name}.{_MACHINE}.{os.getpid()}."


def _remove_leftovers(path: Path) -> None:
    """Make the folder of `path`, and remove what processes of this machine left there that were killed over `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Within what is temporary already, there are more dots in front.
    written = re.compile(re.escape(f"{path.name.lstrip('.')}.{_MACHINE}.") + r"(\d+)\.(.*)")
    for left in path.parent.glob(".*"):
        found = written.fullmatch(left.name.lstrip("."))
        if found and not psutil.pid_exists(int(found[1])):
            if found[2].startswith(_OLD) and (left / path.name).exists() and not path.exists():
                os.replace(left / path.name, path)  # the process was killed before it put the new one there
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """What the file holds; raises OSError where there is no such file, ValueError where it is no usual JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_own_record(path: Path, kind: type[RecordT], remedy: str) -> RecordT:
    """The content of a JSON file that this program wrote.

    kind: a dataclass, or the type of a plain value such as `dict[str, Any]`.
    remedy: what to do where the file is damaged.

    Raises ExperimentError where the file cannot be read, or holds something else.
    """
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except OSError as error:
        reason = error.strerror
    except ValidationError as error:
        first = error.errors()[0]
        reason = ": ".join([*map(str, first["loc"]), first["msg"]])
    raise ExperimentError(f"{path} is damaged ({reason}); {remedy}")


def write_json(path: Path, content: Any) -> None:
    """Write content as JSON with sorted keys, whole or not at all. Numbers that are not finite become null."""
    text = json.dumps(_finite(content), ensure_ascii=False, indent=2, sort_keys=True, allow_nan=False)
    with atomic_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8", newline="\n")


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one line of JSON for each row; see `write_json`."""
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as lines:
        for row in rows:
            lines.write(json.dumps(_finite(dict(row)), ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n")


def _finite(content: Any) -> Any:
    """JSON has no NaN and no infinity (a perplexity can overflow)."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
