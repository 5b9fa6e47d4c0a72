"""Who leads a sweep: one process, or one for each of its parts.

Every leader holds a lock in the sweep's folder for as long as it leads, so that it is seen on every
machine, and is gone when its process is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from attnlab.errors import ExperimentError
from attnlab.runs.sweep_record import LOCK

_GATE = "gate"


class Leaders:
    """The leaders of one sweep, as one of them sees it.

    folder: of the sweep.
    shard: the part that this process leads, such as `3/8`; None for a whole sweep.
    """

    def __init__(self, folder: Path, shard: str | None) -> None:
        self._folder, self._shard = folder, shard
        self._lock = FileLock(folder / _lock_name(shard))

    def at_the_gate(self) -> FileLock:
        """Held by whoever comes or goes, so that they do it one after the other."""
        return FileLock(self._folder / _GATE)

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Lead while the block runs; whoever enters stands at the gate.

        Raises ExperimentError where another process leads the same points: two would write
        contradictory records.
        """
        try:
            held = self._lock.acquire(timeout=0)
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

    def others(self) -> list[str | None]:
        """The parts that other processes lead now; None stands for the whole."""
        return leaders_of(self._folder, self._lock.lock_file)

    def _name(self) -> str:
        sweep = f"the sweep {self._folder.name}"
        return sweep if self._shard is None else f"part {self._shard} of {sweep}"


def leaders_of(folder: Path, own: str = "") -> list[str | None]:
    """The parts of a sweep that processes lead now; None stands for the whole.

    own: the path of a lock that is left out.
    """
    found = []
    for path in sorted(folder.glob(f"{LOCK}*")):
        if str(path) == own:
            continue
        try:
            with FileLock(path).acquire(timeout=0):
                pass
        except Timeout:
            found.append(_shard_of(path.name))
    return found


def _lock_name(shard: str | None) -> str:
    return LOCK if shard is None else f"{LOCK}.{shard.replace('/', '-of-')}"


def _shard_of(lock_name: str) -> str | None:
    part = lock_name.removeprefix(LOCK).removeprefix(".")
    return part.replace("-of-", "/") or None


def _number_of_parts(shard: str | None) -> int:
    return 1 if shard is None else int(shard.partition("/")[2])
