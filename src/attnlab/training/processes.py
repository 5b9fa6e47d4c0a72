"""Stop signals and the processes of a training.

Signals reach all processes, and no process outlives its parent.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.environments import SLURMEnvironment
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from attnlab.errors import ExperimentError

# Ctrl-C is SIGINT. Schedulers send the others some time before they kill; submitit has Slurm send
# SIGUSR2: its handler requeues the job.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
REQUEUING = (signal.SIGUSR2,)
POLL = 0.2  # seconds between two checks of the parent; a resumed training takes longer to start
_MARK = f"{ExperimentError.__module__}.{ExperimentError.__qualname__}: "


class StopSignals:
    """Records a stop signal until the current step has ended.

    A second Ctrl-C raises KeyboardInterrupt at once.

    received: a signal that is not handled yet.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._made_in = os.getpid()
        self._before: dict[int, Any] = {}

    def remember_handlers(self) -> None:
        """Store the current handlers, before Lightning sets handlers of its own.

        Lightning's handlers wait for processes that may not answer.
        """
        self._before = {number: signal.getsignal(number) for number in (*STOPPING, *REQUEUING)}

    def listen(self) -> None:
        """Record stop signals from now on; Python allows this in the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, before in self._before.items():
            if callable(before) or (number in STOPPING and before != signal.SIG_IGN):
                signal.signal(number, self._record)

    def handle(self, number: int) -> None:
        """Call the handler from before `listen`.

        Without one, or with Python's own, end the process.
        """
        self.received = None
        handler: Callable[[int, FrameType | None], Any] | Any = self._before.get(number)
        if not callable(handler) or handler is signal.default_int_handler:
            raise SystemExit(128 + number)
        handler(number, None)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        # A terminal sends Ctrl-C to every process. Forked ones leave the second to their parent.
        if number == signal.SIGINT and os.getpid() == self._made_in:
            signal.signal(number, self._before[number])
            _announce_stop()


def is_to_requeue(number: int) -> bool:
    """Whether a signal asks for the job of Slurm, in which this process is, to be queued again.

    So SIGUSR1 does in Lightning, where `#SBATCH --signal=USR1@90` sends it before the time limit.
    Jobs of a sweep have SIGUSR2 for it, and a handler of submitit's.
    """
    is_of_sweep = "SUBMITIT_EXECUTOR" in os.environ
    if number != signal.SIGUSR1 or "SLURM_JOB_ID" not in os.environ or is_of_sweep:
        return False
    return SLURMEnvironment.detect()


def requeue_job() -> str:
    """Have Slurm queue the job of this process again; returns what came of it, for a sentence."""
    job = os.environ["SLURM_JOB_ID"]
    if "SLURM_ARRAY_JOB_ID" in os.environ:
        job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    try:
        ended = subprocess.run(
            ["scontrol", "requeue", job], capture_output=True, text=True, timeout=60
        )
        problem = " ".join(ended.stderr.split()) if ended.returncode != 0 else None
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem is not None:
        return f"Slurm does not queue job {job} again ({problem}); the same command resumes"
    return f"Slurm queues job {job} again, which resumes"


def _announce_stop() -> None:
    # A signal handler must not print: it may have interrupted a print.
    os.write(
        2,
        b"Ctrl-C: training saves and stops after this step or validation; "
        b"Ctrl-C again stops it at once\n",
    )


@contextmanager
def supervise_forked(trainer: pl.Trainer) -> Iterator[None]:
    """Around `trainer.fit`: forward stop signals to forked processes, and report how they ended.

    Does nothing if this process trains itself.

    Raises:
        SystemExit: a signal stopped the training; its last checkpoint is written. Lightning makes
            one of a second Ctrl-C, too.
        ExperimentError: what a process raised, or that one of them was killed.
    """
    launcher: Any = trainer.strategy.launcher
    if launcher is None or not launcher.is_interactive_compatible:  # only launchers that fork are
        yield
        return
    here = os.getpid()
    received = 0

    def forward(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if os.getpid() != here:  # a child that has not set its own handler yet
            raise SystemExit(128 + number)
        if number == received == signal.SIGINT:
            launcher.kill(signal.SIGKILL)  # safe at any moment: files are written atomically
            raise KeyboardInterrupt
        if number == signal.SIGINT:
            _announce_stop()
        received = number
        launcher.kill(number)

    listening = [number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in listening}
    try:
        yield
    except Exception as error:
        if received:
            # The processes stopped because of the signal
            raise SystemExit(128 + received) from None
        # The exception of another process arrives as the text of its traceback.
        last = str(error).rstrip().rpartition("\n")[2]
        if isinstance(error, ProcessRaisedException) and last.startswith(_MARK):
            raise ExperimentError(last.removeprefix(_MARK)) from None
        if isinstance(error, ProcessExitedException):
            name = error.signal_name
            ended = f"was killed by {name}" if name else f"ended with exit code {error.exit_code}"
            raise ExperimentError(
                f"one of the {trainer.world_size} training processes {ended}; the same command "
                "resumes from the last checkpoint (a process that the system kills without a "
                "message most often ran out of memory)"
            ) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def explain_out_of_memory(remedy: str) -> Iterator[None]:
    """Raise ExperimentError `out of memory: ...; <remedy>` if memory runs out.

    The memory is that of the device or the process.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_out_of_memory = isinstance(error, (MemoryError, torch.OutOfMemoryError))
        # torch's allocator for the CPU raises a plain RuntimeError.
        if not is_out_of_memory and "can't allocate memory" not in str(error):
            raise
        raise ExperimentError(f"out of memory: {error}; {remedy}") from error


class EndWithParent(pl.Callback):
    """Ends a training process whose parent was killed.

    It would otherwise train on, and write to the same files as a resumed training. Processes of
    `ddp_fork` are children of the process that made this callback. Those of `ddp`, except the first
    of each node, are children of that first process, of torchrun or of Slurm.
    """

    def __init__(self) -> None:
        self._made_in = os.getpid()
        self._parent = os.getppid()

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        is_forked = os.getpid() != self._made_in
        if is_forked:
            parent = self._made_in
        elif trainer.local_rank > 0:
            parent = self._parent
        else:
            return
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """Wait for the end of this parent, then kill this process."""
    while os.getppid() == parent:
        time.sleep(POLL)
    os.kill(os.getpid(), signal.SIGKILL)  # safe at any moment: files are written atomically
