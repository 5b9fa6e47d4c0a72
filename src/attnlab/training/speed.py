"""Counters of a training: speed, time and memory."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytorch_lightning as pl
import torch

from attnlab.batch import Batch


class SpeedCounters(pl.Callback):
    """Logs counters every `every` steps, in the first process only.

    speed/target_tokens: real target tokens trained on so far, `<eos>` included.
    speed/sentences: sentences so far.
    speed/target_tokens_per_cpu_second: the mean so far.
    time/training_cpu_seconds: of this process and its children.
    time/validation_cpu_seconds: the same during validations, including pictures, checkpoints and
        their upload; and before the first step, when the untrained model's attention is drawn.
    time/training_wall_seconds, time/validation_wall_seconds: wall-clock time, which includes a
        GPU's work.
    system/resident_megabytes: memory of this process.
    system/peak_training_megabytes: its peak since this process started to train; Linux only.
    system/peak_cuda_megabytes: the peak of tensors on the GPU since then; on a GPU only.

    The rate uses processor time, which other programs on the machine disturb less than wall-clock
    time. With several processes, all counters are those of the first one without its children,
    which may be the others. A resumed training continues the counters of its checkpoint, except for
    the peaks.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._tokens = 0
        self._sentences = 0
        self._seconds = {
            "training_cpu": 0.0,
            "training_wall": 0.0,
            "validation_cpu": 0.0,
            "validation_wall": 0.0,
        }
        self._since = (0.0, 0.0)  # processor time and wall clock when the seconds were last updated
        self._phase = "training"
        self._logged_step = 0
        self._with_children = True

    def state_dict(self) -> dict[str, Any]:
        self._update()
        return {**self._seconds, "tokens": self._tokens, "sentences": self._sentences}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._seconds = {name: state[name] for name in self._seconds}
        self._tokens = state["tokens"]
        self._sentences = state["sentences"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._with_children = trainer.world_size == 1
        reset_peaks()
        self._since = self._now()
        self._logged_step = trainer.global_step
        # Other callbacks draw now; training begins with its first batch.
        self._phase = "validation"

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._update()
        self._phase = "validation"

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        if self._phase == "validation":
            self._update()
            self._phase = "training"

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        self._sentences += len(batch)
        if isinstance(batch, Batch):
            self._tokens += batch.num_target_tokens
        # With `accumulate` several parts end in one step, which only the last of them completes.
        is_new = trainer.global_step > self._logged_step
        if is_new and trainer.global_step % self._every == 0 and trainer.is_global_zero:
            self._logged_step = trainer.global_step
            for logger in trainer.loggers:
                logger.log_metrics(self._counters(), step=trainer.global_step - 1)

    def _now(self) -> tuple[float, float]:
        """Processor time and wall clock."""
        cpu = cpu_seconds() if self._with_children else time.process_time()
        return cpu, time.monotonic()

    def _update(self) -> None:
        """Add the time since the last call to the current phase."""
        now = self._now()
        for clock, before, after in zip(("cpu", "wall"), self._since, now, strict=True):
            self._seconds[f"{self._phase}_{clock}"] += after - before
        self._since = now

    def _counters(self) -> dict[str, float]:
        self._update()
        counters = {
            **{f"time/{name}_seconds": seconds for name, seconds in self._seconds.items()},
            **peak_megabytes(),
            "speed/sentences": self._sentences,
            "system/resident_megabytes": psutil.Process().memory_info().rss / 1e6,
        }
        if self._tokens:
            seconds = self._seconds["training_cpu"]
            rate = self._tokens / seconds if seconds else 0.0
            counters["speed/target_tokens"] = self._tokens
            counters["speed/target_tokens_per_cpu_second"] = rate
        return counters


def cpu_seconds() -> float:
    """Processor time of this process and of its children, including those that have ended."""
    process = psutil.Process()
    own = process.cpu_times()
    total = own.user + own.system + own.children_user + own.children_system
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = child.cpu_times()
            total += times.user + times.system
    return float(total)


def reset_peaks() -> None:
    """Reset the peaks of this process's memory, where the system supports it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def peak_megabytes() -> dict[str, float]:
    """The peaks since `reset_peaks`, by the metric's name.

    They are those of memory on Linux, and of tensors on a GPU that is in use.
    """
    peaks = {}
    with suppress(OSError):
        status = Path("/proc/self/status").read_text()
        (kilobytes,) = re.findall(r"VmHWM:\s*(\d+) kB", status)
        peaks["system/peak_training_megabytes"] = int(kilobytes) * 1024 / 1e6
    if torch.cuda.is_initialized():
        peaks["system/peak_cuda_megabytes"] = torch.cuda.max_memory_allocated() / 1e6
    return peaks
