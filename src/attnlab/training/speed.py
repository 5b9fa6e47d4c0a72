"""How fast a training goes, and how much memory it holds: counters beside its metrics."""

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
    """Writes counters to the logger every `every` steps, in the first process alone.

    speed/target_tokens: real target tokens trained on so far, `<eos>` included; speed/sentences: sentences so far.
    speed/target_tokens_per_cpu_second: since the last record.
    time/training_cpu_seconds: of this process and its children; what a validation takes, its pictures, checkpoints
        and their delivery included, is counted apart as time/validation_cpu_seconds.
    time/training_wall_seconds, time/validation_wall_seconds: the same by the clock, which a GPU's work shows in too.
    system/resident_megabytes, system/peak_resident_megabytes: memory of this process, now and at most ever.
    system/peak_training_megabytes: at most since this training started, which in a process of several trainings is
        another figure; left out where the system does not report it (Linux does).
    system/peak_cuda_megabytes: at most in tensors on the GPU since this training started; only where it runs on one.

    The rate is by processor time: another program on the machine changes it less than the clock's. Of several processes
    all of it is the first one's, without its children, which may be the others. What was counted before a checkpoint is
    counted on from it.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._tokens = self._sentences = 0
        self._training = self._validation = 0.0  # seconds so far
        self._training_wall = self._validation_wall = 0.0  # the same by the clock
        self._since = self._since_wall = 0.0  # which these were last added to
        self._validates = False
        self._children = True
        self._last = (0, 0.0)  # tokens and seconds at the last record
        self._peak: int | None = 0  # bytes, before this process went on from a checkpoint; None: not reported
        self._peak_before = 0  # of this process, before this training
        self._peak_cuda = 0  # bytes, before this process went on from a checkpoint

    def state_dict(self) -> dict[str, Any]:
        self._add()
        return {
            "tokens": self._tokens,
            "sentences": self._sentences,
            "training": self._training,
            "validation": self._validation,
            "training_wall": self._training_wall,
            "validation_wall": self._validation_wall,
            "last": list(self._last),
            "peak": self._peak_of_training(),
            "peak_cuda": self._peak_of_cuda(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._tokens, self._sentences = state["tokens"], state["sentences"]
        self._training, self._validation = state["training"], state["validation"]
        self._training_wall, self._validation_wall = state["training_wall"], state["validation_wall"]
        self._last = (state["last"][0], state["last"][1])
        self._peak, self._peak_cuda = state["peak"], state["peak_cuda"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._children = trainer.world_size == 1
        self._peak_before = peak_resident_bytes()
        if not forget_peak():
            self._peak = None
        if torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats()
        self._since, self._since_wall = self._cpu_seconds(), time.monotonic()

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not self._validates:
            self._add()
            self._validates = True

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        if self._validates:
            self._add()
            self._validates = False

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._sentences += len(batch)
        if isinstance(batch, Batch):
            self._tokens += batch.num_target_tokens
        if trainer.global_step % self._every == 0 and trainer.is_global_zero and trainer.logger is not None:
            trainer.logger.log_metrics(self._counters(), step=trainer.global_step - 1)

    def _add(self) -> None:
        """Add what has passed to what it was spent on."""
        now, now_wall = self._cpu_seconds(), time.monotonic()
        if self._validates:
            self._validation += now - self._since
            self._validation_wall += now_wall - self._since_wall
        else:
            self._training += now - self._since
            self._training_wall += now_wall - self._since_wall
        self._since, self._since_wall = now, now_wall

    def _cpu_seconds(self) -> float:
        return cpu_seconds() if self._children else time.process_time()

    def _counters(self) -> dict[str, float]:
        self._add()
        resident = psutil.Process().memory_info().rss
        counters = {
            "time/training_cpu_seconds": self._training,
            "time/validation_cpu_seconds": self._validation,
            "time/training_wall_seconds": self._training_wall,
            "time/validation_wall_seconds": self._validation_wall,
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
            tokens, before = self._last
            counters["speed/target_tokens"] = self._tokens
            if self._training > before:  # the clock has ticked since
                counters["speed/target_tokens_per_cpu_second"] = (self._tokens - tokens) / (self._training - before)
                self._last = (self._tokens, self._training)
        return counters

    def _peak_of_training(self) -> int | None:
        return None if self._peak is None else max(self._peak, remembered_peak_bytes())

    def _peak_of_cuda(self) -> int:
        return max(self._peak_cuda, torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0)


def cpu_seconds() -> float:
    """Processor time of this process and of its children, those that have ended among them."""
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


def forget_peak() -> bool:
    """Have the kernel count the peak of this process's memory from here on; False where it does not."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def remembered_peak_bytes() -> int:
    """The most memory that this process held since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return 1024 * int(peak)


def peak_resident_bytes() -> int:
    """The most memory that this process held, ever or since `forget_peak`."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
