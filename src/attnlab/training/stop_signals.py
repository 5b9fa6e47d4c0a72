"""Signals that ask a training to make room. They are kept until the step that is under way has ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# What schedulers send some time before they kill. SIGUSR2 is Slurm's for those who take their jobs up again by
# submitit, whose handler then queues the job anew.
STOPPING = (signal.SIGTERM, signal.SIGUSR1)
REQUEUING = (signal.SIGUSR2,)
AGAIN = 1.0  # seconds: what arrives sooner is the same request, sent to a process and to its group


class StopSignals:
    """received: the signal that came first, until it is answered."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._when = 0.0
        self._before: dict[int, Any] = {}

    def remember_handlers(self) -> None:
        """To be called before Lightning sets handlers of its own, which wait for processes that may not answer."""
        self._before = {number: signal.getsignal(number) for number in (*STOPPING, *REQUEUING)}

    def listen(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number, before in self._before.items():
            if callable(before) or (number in STOPPING and before != signal.SIG_IGN):
                signal.signal(number, self._take)

    def answer(self, number: int) -> None:
        """Do what would have been done at once without this: end the process, or what an earlier handler does."""
        self.received = None
        handler: Callable[[int, FrameType | None], Any] | Any = self._before.get(number)
        if not callable(handler):
            raise SystemExit(128 + number)
        handler(number, None)

    def _take(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received is not None and now > self._when + AGAIN:
            raise SystemExit(128 + number)  # asked again: whoever asks cannot wait
        self.received, self._when = number, now


@contextmanager
def passed_on(send: Callable[[int], None]) -> Iterator[None]:
    """For a process whose children train: what asks it to stop asks them. Ends as the signal would have ended it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    here, received = os.getpid(), 0

    def take(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if os.getpid() != here:  # a child before it set a handler of its own
            raise SystemExit(128 + number)
        received = number
        send(number)

    before = {number: signal.signal(number, take) for number in STOPPING}
    try:
        yield
    except Exception:
        if received:
            raise SystemExit(128 + received) from None  # the children stopped because they were asked to
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
