"""Jobs of sweeps on one machine take its GPUs in turn.

A process that computes on a GPU keeps it until it ends, and holds a lock in the machine's folder of
temporary files meanwhile. So jobs of several sweeps, and of several commands, get different GPUs,
and where there are more jobs than GPUs, each GPU gets as many as the others.
"""

from __future__ import annotations

import getpass
import itertools
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Turn:
    """A device of this process; lock: is held until the process ends."""

    index: int
    lock: FileLock


_OWN: list[Turn] = []  # of this process, one at most


def device_in_turn(count: int) -> int:
    """The index of the device that this process computes on, the same at each call.

    count: devices that this process sees.
    """
    if not _OWN:
        folder = Path(tempfile.gettempdir()) / f"attnlab-devices-{_user()}"
        folder.mkdir(exist_ok=True)
        _OWN.append(free_device(names_of_devices(count), folder))
    return _OWN[0].index


def _user() -> str:
    """The name of the user; the number where it has none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def own_device() -> int | None:
    """The device that `device_in_turn` gave this process; None where it was never asked."""
    return _OWN[0].index if _OWN else None


def names_of_devices(count: int) -> list[str]:
    """What the devices of this process are called on the machine, in the order of their indices."""
    visible = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    if len(visible) < count:
        visible = [str(index) for index in range(count)]
    return [re.sub(r"[^\w-]", "_", name) for name in visible[:count]]


def free_device(names: Sequence[str], folder: Path) -> Turn:
    """The first device that as few other processes have as any.

    names: of the devices, by which all processes of the machine know them.
    folder: of the locks.
    """
    for others in itertools.count():
        for index, name in enumerate(names):
            try:
                held = FileLock(folder / f"{name}.{others}.lock")
                held.acquire(timeout=0)
            except Timeout:
                continue
            return Turn(index, held)
    raise AssertionError("there is always a next round")
