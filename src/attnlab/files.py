"""Files and folders: written whole or not at all, JSON and YAML read with clear errors.

Content reaches the disk before its rename does: a rename may survive a power failure that the content did not.
"""

from __future__ import annotations

import errno
import json
import math
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import yaml  # type: ignore[import-untyped]

from attnlab.errors import ExperimentError

_TAKEN_AWAY = "old-"  # in the name of a temporary folder that holds what another is to take the place of


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place when the block ends, and vanishes when it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_what_the_dead_left(path)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.{_owner()}", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o755)  # mkdtemp's 0700 would keep a folder's readers out
        _to_the_disk(temporary)
        if path.exists():
            _take_its_place(temporary, path)
        else:
            os.replace(temporary, path)
            sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _take_its_place(temporary: Path, path: Path) -> None:
    """Put a folder where another one is. One that cannot be moved, as a mounted one, stays, and nothing beside it."""
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.{_owner()}{_TAKEN_AWAY}", dir=path.parent))
    try:
        os.replace(path, old / path.name)
        os.replace(temporary, path)
    except BaseException:
        if not path.exists():
            os.replace(old / path.name, path)
        # Where even that failed, it is not empty and holds what was: it must not be removed.
        with suppress(OSError):
            old.rmdir()
        raise
    sync(path.parent)
    shutil.rmtree(old)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary file name beside `path` that takes its place when the block ends, and vanishes when it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_what_the_dead_left(path)
    # The suffix stays: writers such as matplotlib choose the format by it.
    temporary = path.with_name(f".{path.name}.{_owner()}x{path.suffix}")
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _to_the_disk(folder: Path) -> None:
    for inside, _, names in os.walk(folder):
        for name in names:
            sync(Path(inside, name))
        sync(Path(inside))


def sync(path: Path) -> None:
    """What was written to a file or a folder is on the disk, should the power fail."""
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened, and no file for this alone
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _owner() -> str:
    """Who writes something temporary, as part of its name."""
    return f"{re.sub(r'[^A-Za-z0-9-]', '-', platform.node())[:30]}.{os.getpid()}."


def _remove_what_the_dead_left(path: Path) -> None:
    """Remove temporary files and folders for `path` of processes of this machine that were killed over them."""
    # Within what is temporary already there are more dots at the beginning.
    begin, host = path.name.lstrip(".") + ".", _owner().partition(".")[0]
    for left in path.parent.glob(".*"):
        name = left.name.lstrip(".")
        if name.startswith(begin):
            owner, _, rest = name.removeprefix(begin).partition(".")
            pid, _, kind = rest.partition(".")
            if owner == host and pid.isdecimal() and not psutil.pid_exists(int(pid)):
                if kind.startswith(_TAKEN_AWAY) and (left / path.name).exists() and not path.exists():
                    os.replace(left / path.name, path)  # it died before it put the new there
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


RecordT = TypeVar("RecordT")


def read_json(path: Path) -> Any:
    """What the file holds; raises OSError where there is no such file, ValueError where it is no usual JSON."""
    check_regular(path)
    return json.loads(path.read_text(encoding="utf-8"))


def read_own_json(path: Path, remedy: str) -> dict[str, Any]:
    """The fields of a file that this program wrote.

    remedy: what to do where it is damaged.

    Raises:
        ExperimentError: it cannot be read, or holds something else.
    """
    try:
        fields = read_json(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ExperimentError(f"{path} is damaged ({reason}); {remedy}") from None
    if not isinstance(fields, dict):
        raise ExperimentError(f"{path} is damaged (it holds no JSON object); {remedy}")
    return fields


def read_own_record(path: Path, kind: type[RecordT], remedy: str) -> RecordT:
    """As `read_own_json`, as a dataclass: a field that is missing or of another type is damage too."""
    from pydantic import TypeAdapter, ValidationError

    fields = read_own_json(path, remedy)
    try:
        return TypeAdapter(kind).validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ExperimentError(f"{path} is damaged ({place}: {first['msg']}); {remedy}") from None


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


def check_regular(path: Path) -> None:
    """Raise OSError for a device or a pipe, which could be read without an end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file", str(path))


def check_writable(place: str, folder: Path) -> None:
    """Raise ExperimentError where a folder, and what goes into it, could not be made; nothing is left of the try.

    place: the setting that names the folder.
    """
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    if not nearest.is_dir():
        raise ExperimentError(f"{place}: {folder} cannot be made, for {nearest} is a file; name another place")
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise ExperimentError(
            f"{place}: nothing can be written to {nearest} ({error.strerror}); name another place"
        ) from None


def parse_yaml(text: str, load: Callable[[str], Any] = yaml.safe_load) -> Any:
    """What the text holds.

    load: `OmegaConf.create` refuses a key that comes twice, as it does in configs.

    Raises:
        ValueError: it cannot be read; its sentence lacks but the name of the file.
    """
    try:
        return load(text)
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"is not valid YAML{line}: {error.problem}; correct it there") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: such as a date that does not exist
        raise ValueError(f"is not valid YAML: {' '.join(str(error).split())}; correct it there") from None
