"""Cost of a process: processor time including its children's, and peak memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Peak memory is in kilobytes, on macOS in bytes.
_UNIT = 1 if sys.platform == "darwin" else 1024
# The environment variables by which torch, numpy, tokenizers and Arrow take one thread.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Cost:
    """The cost of processes.

    cpu_seconds: user and system time.
    peak_megabytes: the most resident memory of one of the processes.
    """

    cpu_seconds: float
    peak_megabytes: float


def run_measured(command: Sequence[str | Path], *, cwd: Path | None = None) -> tuple[Cost, str]:
    """Run a command to its end, with one thread: its cost and its standard output.

    The kernel counts a child's time when its parent waited for it: a process that outlives its
    parent is not in it. Raises RuntimeError where the command fails, with its `error: ...` lines,
    or else with the end of its output.
    """
    environment = {**os.environ, **ONE_THREAD}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            env=environment,
            stdout=output,
            stderr=complaints,
            stdin=subprocess.DEVNULL,
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        complaints.seek(0)
        said, complained = (
            stream.read().decode(errors="replace") for stream in (output, complaints)
        )
    if process.returncode != 0:
        words = " ".join(str(part) for part in command)
        if mistakes := [line for line in complained.splitlines() if line.startswith("error: ")]:
            raise RuntimeError("\n".join(mistakes))  # a sentence for the user
        raise RuntimeError(
            f"{words}\nended with {process.returncode}:\n{(complained + said)[-3000:]}"
        )
    return _cost(usage), said


def this_process() -> Cost:
    """The cost of this process so far.

    The time includes its children that have ended; the memory does not.
    """
    own, children = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    return Cost(_cost(own).cpu_seconds + _cost(children).cpu_seconds, _cost(own).peak_megabytes)


def limit_threads() -> None:
    """Limit this process, and those that it starts, to one thread.

    It must be called before torch is imported.
    """
    os.environ.update(ONE_THREAD)


def _cost(usage: resource.struct_rusage) -> Cost:
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _UNIT / 1e6)
