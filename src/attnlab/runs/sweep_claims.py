"""Which process works on which point of a sweep whose jobs are processes of their own.

A process claims a point for as long as it works on it, by a lock in the sweep's folder: the claim
of a process that died is free, on all machines.
"""

from __future__ import annotations

from pathlib import Path

from filelock import BaseFileLock, Timeout

from attnlab.locks import lock, locks_in
from attnlab.runs.sweep_record import JOBS, SweepFolder


class PointHeldError(Exception):
    """Another process works on the point of this job."""


def is_claimed(folder: SweepFolder, number: int) -> bool:
    """Whether a process works on a point of a sweep."""
    path = _path_of(folder, number)
    if path not in locks_in(path.parent, path.name):  # it is not made by looking
        return False
    try:
        with lock(path).acquire(timeout=0):
            return False
    except Timeout:
        return True


def _path_of(folder: SweepFolder, number: int) -> Path:
    return folder.path / JOBS / f"{number}.lock"


class Claims:
    """The claims of this process on points of one sweep."""

    def __init__(self, folder: SweepFolder) -> None:
        self._folder, self._jobs = folder, folder.path / JOBS
        self._held: dict[int, BaseFileLock] = {}

    def take(self, number: int) -> bool:
        """Claim a point; returns whether this process has it now."""
        if number in self._held:
            return True
        self._jobs.mkdir(parents=True, exist_ok=True)
        of_point = lock(_path_of(self._folder, number))
        try:
            of_point.acquire(timeout=0)
        except Timeout:
            return False
        self._held[number] = of_point
        return True

    def give_back(self, number: int) -> None:
        """End a claim, and leave no file of it: there are thousands of points, perhaps."""
        of_point = self._held.pop(number, None)
        if of_point is None:
            return
        # Whoever opened the file meanwhile gets no lock of a file that is gone, and makes a new one
        _path_of(self._folder, number).unlink(missing_ok=True)
        of_point.release()

    def give_all_back(self) -> None:
        for number in list(self._held):
            self.give_back(number)

    def of_others(self) -> set[int]:
        """The points that other processes have claimed."""
        found = set()
        for path in locks_in(self._jobs, "[0-9]*.lock"):
            number = int(path.stem)
            if number in self._held:
                continue
            if self.take(number):
                self.give_back(number)
            else:
                found.add(number)
        return found
