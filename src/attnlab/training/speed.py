"""Counters of a training: speed, time and memory."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytorch_lightning as pl
import torch

from attnlab.batch import Batch


class SpeedCounters(pl.Callback):
    """Logs counters every `every` steps, in the first process only.

    speed/target_tokens: real target tokens trained on so far, `<eos>` included; speed/sentences: sentences so far.
    speed/target_tokens_per_cpu_second: since the last record.
    time/training_cpu_seconds: of this process and its children. time/validation_cpu_seconds: the same during
        validations, including pictures, checkpoints and their upload.
    time/training_wall_seconds, time/validation_wall_seconds: wall-clock time, which includes a GPU's work.
    system/resident_megabytes, system/peak_resident_megabytes: memory of this process, now and at its peak.
    system/peak_training_megabytes: the peak since this training started, which differs in a process with several
        trainings; Linux only.
    system/peak_cuda_megabytes: the peak of tensors on the GPU since this training started; on a GPU only.

    The rate uses processor time, which other programs on the machine disturb less than wall-clock time. With several
    processes, all counters are those of the first one without its children, which may be the others. A resumed
    training continues the counters of its checkpoint.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._tokens = self._sentences = 0
        self._seconds = dict.fromkeys(("training_cpu", "training_wall", "validation_cpu", "validation_wall"), 0.0)
        self._since = (0.0, 0.0)  # processor time and wall clock when the seconds were last updated
        self._phase = "training"
        self._children = True
        self._last = (0, 0.0)  # tokens and seconds at the last record
        self._peak: int | None = 0  # bytes, before the resume; None: not reported
        self._peak_before = 0  # bytes, of this process before this training
        self._peak_cuda = 0  # bytes, before the resume

    def state_dict(self) -> dict[str, Any]:
        self._update_seconds()
        return {
            **self._seconds,
            "tokens": self._tokens,
            "sentences": self._sentences,
            "last": list(self._last),
            "peak": self._peak_of_training(),
            "peak_cuda": self._peak_of_cuda(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._seconds = {name: state[name] for name in self._seconds}
        self._tokens, self._sentences = state["tokens"], state["sentences"]
        self._last = (state["last"][0], state["last"][1])
        self._peak, self._peak_cuda = state["peak"], state["peak_cuda"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._children = trainer.world_size == 1
        self._peak_before = peak_resident_bytes()
        if not reset_peak():
            self._peak = None
        if torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats()
        self._since = self._now()

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._update_seconds()
        self._phase = "validation"

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        if self._phase == "validation":
            self._update_seconds()
            self._phase = "training"

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._sentences += len(batch)
        if isinstance(batch, Batch):
            self._tokens += batch.num_target_tokens
        if trainer.global_step % self._every == 0 and trainer.is_global_zero and trainer.logger is not None:
            trainer.logger.log_metrics(self._counters(), step=trainer.global_step - 1)

    def _now(self) -> tuple[float, float]:
        return cpu_seconds() if self._children else time.process_time(), time.monotonic()

    def _update_seconds(self) -> None:
        """Add the time since the last call to the current phase."""
        now = self._now()
        for clock, before, after in zip(("cpu", "wall"), self._since, now, strict=True):
            self._seconds[f"{self._phase}_{clock}"] += after - before
        self._since = now

    def _counters(self) -> dict[str, float]:
        self._update_seconds()
        resident = psutil.Process().memory_info().rss
        counters = {
            **{f"time/{name}_seconds": seconds for name, seconds in self._seconds.items()},
            "speed/sentences": self._sentences,
            "system/resident_megabytes": resident / 1e6,
            "system/peak_resident_megabytes": max(resident, self._peak_before, peak_resident_bytes()) / 1e6,
        }
        peak = self._peak_of_training()
        if peak is not None:
            counters["system/peak_training_megabytes"] = peak / 1e6
        if (peak_cuda := self._peak_of_cuda()) > 0:
            counters["system/peak_cuda_megabytes"] = peak_cuda / 1e6
        if self._tokens:
            (tokens, before), seconds = self._last, self._seconds["training_cpu"]
            counters["speed/target_tokens"] = self._tokens
            if seconds > before:  # the clock may be too coarse for two records
                counters["speed/target_tokens_per_cpu_second"] = (self._tokens - tokens) / (seconds - before)
                self._last = (self._tokens, seconds)
        return counters

    def _peak_of_training(self) -> int | None:
        return None if self._peak is None else max(self._peak, peak_bytes_since_reset())

    def _peak_of_cuda(self) -> int:
        return max(self._peak_cuda, torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0)


def cpu_seconds() -> float:
    """Processor time of this process and of its children, including those that have ended."""
    process = psutil.Process()
    own = process.cpu_times()
    total = own.user + own.system + own.children_user + own.children_system
    for child in process.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return float(total)


def reset_peak() -> bool:
    """Reset the kernel's peak of this process's memory; False if the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def peak_bytes_since_reset() -> int:
    """The peak of this process's memory since `reset_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return 1024 * int(peak)


def peak_resident_bytes() -> int:
    """The peak of this process's memory, ever or since `reset_peak`."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
