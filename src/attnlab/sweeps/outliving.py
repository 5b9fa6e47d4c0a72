"""No worker outlives what started it: one that is killed by SIGKILL cannot report it."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time

import psutil

_INTERVAL = 1.0  # seconds
_SHELLS = ("sh", "bash", "dash", "zsh", "fish")
_watched: set[tuple[int, float]] = set()


def this_process() -> str:
    """A process in words that another one can find it by, `host pid birth`."""
    return _words(psutil.Process())


def starter() -> str:
    """The process that started this one, a shell between them not counted."""
    parent = psutil.Process().parent()
    above = parent.parent() if parent is not None and parent.name() in _SHELLS else None
    return _words(above or parent or psutil.Process())


def _words(process: psutil.Process) -> str:
    return f"{platform.node()} {process.pid} {process.create_time()!r}"


def end_with(process: str) -> None:
    """End this process and its children when that one, on this same machine, is gone; returns at once."""
    host, pid, birth = process.rsplit(" ", 2)
    if host != platform.node() or int(pid) == os.getpid() or (int(pid), float(birth)) in _watched:
        return
    _watched.add((int(pid), float(birth)))
    threading.Thread(target=_watch, args=(int(pid), float(birth)), name="outliving", daemon=True).start()


def _watch(pid: int, birth: float) -> None:
    while _lives(pid, birth):
        time.sleep(_INTERVAL)
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    os._exit(128 + signal.SIGKILL)


def _lives(pid: int, birth: float) -> bool:
    """Whether it is there and no zombie; a number may belong to another process by now."""
    try:
        found = psutil.Process(pid)
        # The time of birth is reckoned from the machine's start, which the clock's corrections move a little.
        return abs(found.create_time() - birth) < 2 and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
