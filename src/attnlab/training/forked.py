"""Trainings whose processes are forked from this one: passes stop signals on to them, and reports what stopped them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from attnlab.errors import ExperimentError
from attnlab.training.stop_signals import passed_on

_MARK = f"{ExperimentError.__module__}.{ExperimentError.__qualname__}: "


@contextmanager
def answering_for_forked(trainer: pl.Trainer) -> Iterator[None]:
    """Around `trainer.fit`; nothing happens where this process trains itself.

    Raises:
        SystemExit: a signal stopped the training; its last checkpoint is written.
        ExperimentError: what a process raised, or that one of them was killed.
    """
    launcher: Any = trainer.strategy.launcher
    if launcher is None or not launcher.is_interactive_compatible:  # only those that fork are
        yield
        return
    try:
        with passed_on(launcher.kill):
            yield
    except ProcessRaisedException as error:
        # All that comes from another process is a text.
        last = str(error).rstrip().rpartition("\n")[2]
        if last.startswith(_MARK):
            raise ExperimentError(last.removeprefix(_MARK)) from None
        raise
    except ProcessExitedException as error:
        how = f"was killed by {error.signal_name}" if error.signal_name else f"ended with exit code {error.exit_code}"
        raise ExperimentError(
            f"one of the {trainer.world_size} training processes {how}; the same command goes on from the last "
            f"checkpoint (a process that the system kills without a word most often asked for too much memory)"
        ) from None
