"""Files and folders that are there whole or not at all, whether a process dies, a disk fills up or the power fails.

What takes a place is on the disk before it does: a rename may outlive a power cut that the content did not.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

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
