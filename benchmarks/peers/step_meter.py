"""Counter of what a peer's training costs between two of its steps.

It needs nothing but the standard library.
"""

import resource
import time


class StepMeter:
    """Tokens, processor time and wall-clock time of `steps` whole steps after the first `warm_up`.

    Reading their batches is included. Call `begins` when a step begins: the time from there to the
    next call holds the step itself, the optimiser's part of it and the making of the next batch. So
    one step more than these must be trained.
    """

    def __init__(self, warm_up: int, steps: int) -> None:
        self._first, self._after = warm_up, warm_up + steps
        self._begun = 0
        self._cpu = self._wall = 0.0
        self.tokens = 0
        self.cpu_seconds: float | None = None
        self.wall_seconds = 0.0

    @property
    def steps_to_train(self) -> int:
        return self._after + 1

    def begins(self, tokens: int) -> None:
        """A step begins, with so many real target tokens, `<eos>` included."""
        if self._begun == self._first:
            self._cpu, self._wall = cpu_seconds(), time.monotonic()
        if self._begun == self._after:
            self.cpu_seconds = cpu_seconds() - self._cpu
            self.wall_seconds = time.monotonic() - self._wall
        if self._first <= self._begun < self._after:
            self.tokens += tokens
        self._begun += 1

    def found(self) -> dict[str, float]:
        """What was counted. Raises RuntimeError where training ended too early for it."""
        if self.cpu_seconds is None:
            raise RuntimeError(
                f"training ended after {self._begun} steps, but {self._after} were to be measured"
            )
        return {
            "tokens": self.tokens,
            "cpu_seconds": self.cpu_seconds,
            "wall_seconds": self.wall_seconds,
        }


def cpu_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
