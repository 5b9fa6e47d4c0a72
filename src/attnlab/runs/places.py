"""Where the points of a search run: so many at a time, and which of them have ended."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol


class Returned(Protocol):
    """What is used of Hydra's `JobReturn`."""

    @property
    def return_value(self) -> Any:
        """What the job returned; raises what it raised."""


Launch = Callable[[list[list[str]]], Sequence[Returned]]


class Places(Protocol):
    """A launcher, as far as a search needs it."""

    def start(self, points: Sequence[list[str]]) -> Sequence[int]:
        """Start points, given by their overrides, without waiting: -> their numbers."""

    def ended(self) -> Mapping[int, Returned]:
        """What points returned that have ended since, by their numbers; waits for one of them."""


class Batches:
    """The places of a launcher that returns when all of its points have ended.

    A batch so takes as long as its slowest point. Which points a search chooses then depends on
    nothing but its seed and the number of its workers.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._numbers = itertools.count()
        self._started: dict[int, list[str]] = {}

    def start(self, points: Sequence[list[str]]) -> Sequence[int]:
        numbers = list(itertools.islice(self._numbers, len(points)))
        self._started |= dict(zip(numbers, points, strict=True))
        return numbers

    def ended(self) -> Mapping[int, Returned]:
        started, self._started = self._started, {}
        return dict(zip(started, self._launch(list(started.values())), strict=True))


class Submitting(Protocol):
    """A launcher that is given points with their numbers, and reports each as it ends."""

    def submit(self, points: Mapping[int, list[str]]) -> None:
        """Start points without waiting, given by their numbers and overrides."""

    def ended(self) -> Mapping[int, Returned]:
        """As `Places.ended`."""


TakeNumbers = Callable[[Sequence[Sequence[str]]], int]
"""The first of consecutive numbers for points."""


class Numbered:
    """The places of a launcher whose points are numbered as they start."""

    def __init__(self, launcher: Submitting, take_numbers: TakeNumbers) -> None:
        self._launcher, self._take_numbers = launcher, take_numbers

    def start(self, points: Sequence[list[str]]) -> Sequence[int]:
        numbered = dict(enumerate(points, start=self._take_numbers(points)))
        self._launcher.submit(numbered)
        return list(numbered)

    def ended(self) -> Mapping[int, Returned]:
        return self._launcher.ended()


class OneByOne:
    """A launcher that is given each point alone, in a thread of its own.

    Its jobs must run in other processes, and it must bear several launches at once.

    launch: with the number of its first point.
    """

    def __init__(self, launch: Callable[[list[list[str]], int], Sequence[Returned]]) -> None:
        self._launch = launch
        self._ended: queue.SimpleQueue[tuple[int, Returned]] = queue.SimpleQueue()

    def submit(self, points: Mapping[int, list[str]]) -> None:
        for number, point in points.items():
            # A leader that stops does not wait for it: it ends the processes of its jobs.
            threading.Thread(target=self._run, args=(number, point), daemon=True).start()

    def _run(self, number: int, point: list[str]) -> None:
        try:
            (returned,) = self._launch([point], number)
        except BaseException as error:  # of the launcher itself, such as a worker that was killed
            returned = Raised(error)
        self._ended.put((number, returned))

    def ended(self) -> Mapping[int, Returned]:
        ended = [self._ended.get()]
        while not self._ended.empty():
            ended.append(self._ended.get())
        return dict(ended)


class Raised:
    """What a launcher raised in place of a result."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    @property
    def return_value(self) -> Any:
        raise self._error
