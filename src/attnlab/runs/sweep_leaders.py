"""Who leads a sweep: one process, one for each of its parts, or any number that share a search.

Every leader holds a lock in the sweep's folder for as long as it leads, so that it is seen on every
machine, and is gone when its process is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, Timeout

from attnlab.errors import ExperimentError
from attnlab.locks import lock, locks_in
from attnlab.runs.sweep_record import LOCK

# Seconds: whoever looks who leads, as `attnlab sweep wait` does, holds each lock for a moment.
_A_LOOK = 1.0
_GATE = "gate"
_EQUAL = "leader"  # of several that share a search


class Leaders:
    """The leaders of one sweep, as one of them sees it.

    folder: of the sweep.
    shard: the part that this process leads, such as `3/8`; None for a whole sweep.
    are_equal: whether any number of processes may lead it, which share the trials of a search.
    """

    def __init__(self, folder: Path, shard: str | None, are_equal: bool = False) -> None:
        self._folder, self._shard, self._are_equal = folder, shard, are_equal

    def at_the_gate(self) -> BaseFileLock:
        """Held by whoever comes or goes, so that they do it one after the other."""
        return lock(self._folder / _GATE)

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Lead while the block runs; whoever enters stands at the gate.

        Raises ExperimentError where another process leads the same points: two would write
        contradictory records.
        """
        if self._are_equal:
            self._shard = self._first_free_place()
        try:
            held = lock(self._folder / _lock_name(self._shard)).acquire(timeout=_A_LOOK)
        except Timeout:
            raise ExperimentError(
                f"{self._name()} is running already; wait for it, or stop it first"
            ) from None
        with held:
            parts = _number_of_parts(self._shard)
            overlapping = [other for other in self.others() if _number_of_parts(other) != parts]
            if overlapping:
                running = ", ".join(other or "the whole of it" for other in overlapping)
                raise ExperimentError(
                    f"the sweep {self._folder.name} is running already ({running}), divided in "
                    f"another way than {self._shard or 'by this command, which leads all of it'}; "
                    "wait for it, or stop it first"
                )
            yield

    def _first_free_place(self) -> str:
        """`leader 1`, or the first number that no other leader has."""
        taken = leaders_of(self._folder)
        number = 1
        while f"{_EQUAL} {number}" in taken:
            number += 1
        return f"{_EQUAL} {number}"

    def others(self) -> list[str | None]:
        """The parts that other processes lead now; None stands for the whole."""
        return leaders_of(self._folder, str(self._folder / _lock_name(self._shard)))

    def _name(self) -> str:
        sweep = f"the sweep {self._folder.name}"
        return sweep if self._shard is None else f"part {self._shard} of {sweep}"


def leaders_of(folder: Path, own: str = "") -> list[str | None]:
    """The parts of a sweep that processes lead now; None stands for the whole.

    own: the path of a lock that is left out.
    """
    found = []
    for path in locks_in(folder, f"{LOCK}*"):
        if str(path) == own:
            continue
        try:
            with lock(path).acquire(timeout=0):
                pass
        except Timeout:
            found.append(_shard_of(path.name))
    return found


def _lock_name(shard: str | None) -> str:
    if shard is None:
        return LOCK
    return f"{LOCK}.{shard.replace('/', '-of-').replace(' ', '-')}"


def _shard_of(lock_name: str) -> str | None:
    part = lock_name.removeprefix(LOCK).removeprefix(".")
    if part.startswith(_EQUAL):
        return part.replace("-", " ")
    return part.replace("-of-", "/") or None


def _number_of_parts(shard: str | None) -> int:
    """How many parts the sweep is divided in; 0 for a search, whose leaders share it."""
    if shard is not None and shard.startswith(_EQUAL):
        return 0
    return 1 if shard is None else int(shard.partition("/")[2])
