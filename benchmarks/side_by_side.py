"""Measurement of several systems in turn.

Other load on the machine then affects all of them equally.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

Measured = dict[str, float]
Contestants = Mapping[str, Callable[[], Measured]]
SLICE_SECONDS = 1.0


@dataclass
class Rounds:
    """What each contestant measured in each round."""

    of: dict[str, list[Measured]] = field(default_factory=dict)

    def median(self, name: str, value: str) -> float:
        """The median over the rounds of one contestant's value."""
        return statistics.median(measured[value] for measured in self.of[name])

    def ratio(self, name: str, rival: str, value: str) -> float:
        """The median over the rounds of a contestant's value divided by its rival's.

        Both values are of the same round.
        """
        pairs = zip(self.of[name], self.of[rival], strict=True)
        return statistics.median(ours[value] / theirs[value] for ours, theirs in pairs)

    def spread(self, name: str, value: str) -> float:
        """How far apart the least and the greatest round lie, in percent of the median."""
        values = [measured[value] for measured in self.of[name]]
        return 100 * (max(values) - min(values)) / statistics.median(values)


def measure(contestants: Contestants, rounds: int, by_slices: bool = False) -> Rounds:
    """Each contestant once a round; progress goes to the error output.

    by_slices: they run at once, a second each in turn, for differences smaller than those of a
        machine's speed within minutes. Each must do its work in one process that it starts.
        Otherwise they run one after the other, and every round begins with another one.

    Raises ValueError where there is nothing to measure.
    """
    if rounds < 1 or not contestants:
        raise ValueError(
            f"there must be a round and a contestant, got {rounds} and {len(contestants)}"
        )
    names = list(contestants)
    found = Rounds({name: [] for name in names})
    for number in range(rounds):
        first = number % len(names)
        order = names[first:] + names[:first]
        for name, measured in (_by_slices if by_slices else _by_turns)(
            {name: contestants[name] for name in order}
        ):
            found.of[name].append(measured)
            values = ", ".join(f"{key} {value:,.4g}" for key, value in measured.items())
            print(f"round {number + 1} of {rounds}  {name}: {values}", file=sys.stderr, flush=True)
    return found


def _by_turns(contestants: Contestants) -> Iterator[tuple[str, Measured]]:
    for name, run in contestants.items():
        yield name, run()


def _by_slices(contestants: Contestants) -> Iterator[tuple[str, Measured]]:
    """Run the contestants in turn, each for a time slice.

    The processes of all others, and their children, are stopped meanwhile.
    """
    with ThreadPoolExecutor(len(contestants)) as pool:
        running = {name: pool.submit(run) for name, run in contestants.items()}
        try:
            while not all(future.done() for future in running.values()):
                processes = _started_processes()
                for chosen in processes:
                    for process in processes:
                        _signal(
                            process,
                            psutil.Process.resume if process == chosen else psutil.Process.suspend,
                        )
                    time.sleep(SLICE_SECONDS)
                if not processes:
                    time.sleep(SLICE_SECONDS)
        finally:
            for process in _started_processes():
                _signal(process, psutil.Process.resume)
    for name, future in running.items():
        yield name, future.result()


def _started_processes() -> list[psutil.Process]:
    """This process's children, without the helper that Python starts beside a spawned one."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(child.cmdline()):
                found.append(child)
    return found


def _signal(process: psutil.Process, send: Callable[[psutil.Process], None]) -> None:
    """Stop or wake a process and all that it started."""
    with suppress(psutil.NoSuchProcess):
        for each in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                send(each)
