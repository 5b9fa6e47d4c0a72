"""The numbers of the points of a search, which are chosen one after the other."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from attnlab.files import read_own_record, write_json
from attnlab.locks import lock
from attnlab.runs.sweep_job import led_sweep, this_process
from attnlab.runs.sweep_record import SweepFolder, choices_of

_NUMBERS = "numbers.json"


@dataclass(frozen=True)
class _Block:
    """Numbers that a leader took for a batch of points."""

    leader: str
    start: int
    count: int


class PointNumbers:
    """Consecutive numbers for each batch of points.

    Without other leaders they start at 0, so that a repeated search has the same. Leaders of one
    study take theirs from one file.

    folder: of the sweep that other leaders share; None where there are none.
    """

    def __init__(self, folder: SweepFolder | None) -> None:
        self._folder = folder
        self._next = 0

    @classmethod
    def of_this_process(cls, are_shared: bool) -> PointNumbers:
        return cls(led_sweep() if are_shared else None)

    def take(self, points: Sequence[Sequence[str]]) -> int:
        """The first of the numbers for these points."""
        if self._folder is None:
            start = self._next
            self._next += len(points)
            return start
        path = self._folder.path / _NUMBERS
        with lock(path.with_suffix(".lock")):
            blocks = _blocks(path)
            ends = [block.start + block.count for block in blocks]
            ends += [job.number + 1 for job in self._folder.jobs()]
            start = max(ends, default=0)
            blocks.append(_Block(this_process(), start, len(points)))
            write_json(path, {"blocks": [asdict(block) for block in blocks]})

        # A point that a dead leader had begun gets a new number, and must not be counted twice. The
        # rest of its overrides may differ, as sweep.trials does in a longer search.
        varies = self._folder.read().varies
        taken = [choices_of(point, varies) for point in points]
        for job in self._folder.jobs():
            if job.number < start and job.choices in taken:
                self._folder.remove_job(job.number)
        return start


class NumbersOfLeader(Container[int]):
    """The numbers that a leader has taken so far.

    leader: its process, in words.
    """

    def __init__(self, folder: Path, leader: str) -> None:
        self._path, self._leader = folder / _NUMBERS, leader

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        return any(
            block.start <= number < block.start + block.count
            for block in _blocks(self._path)
            if block.leader == self._leader
        )


def _blocks(path: Path) -> list[_Block]:
    if not path.is_file():
        return []
    return read_own_record(path, dict[str, list[_Block]], "remove it")["blocks"]
