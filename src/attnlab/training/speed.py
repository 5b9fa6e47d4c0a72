"""How fast a training goes, and how much memory it holds: counters beside its metrics."""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import psutil
import pytorch_lightning as pl

from attnlab.batch import Batch


class SpeedCounters(pl.Callback):
    """Writes counters to the logger every `every` steps, in the first process alone.

    speed/target_tokens: real target tokens trained on so far, `<eos>` included; speed/sentences: sentences so far.
    speed/target_tokens_per_cpu_second: since the last record.
    time/training_cpu_seconds: of this process and its children; what a validation takes, its pictures, checkpoints
        and their delivery included, is counted apart as time/validation_cpu_seconds.
    system/resident_megabytes, system/peak_resident_megabytes: memory of this process.

    Processor time and not the clock's: another program on the machine changes it least. Of several processes all of it
    is the first one's, without its children, which may be the others.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._tokens = self._sentences = 0
        self._started = self._validation = 0.0
        self._children = True
        self._validating_since: float | None = None
        self._last = (0, 0.0)  # tokens and seconds at the last record

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._children = trainer.world_size == 1
        self._started = self._cpu_seconds()

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._validating_since is None:
            self._validating_since = self._cpu_seconds()

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        if self._validating_since is not None:
            self._validation += self._cpu_seconds() - self._validating_since
            self._validating_since = None

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._sentences += len(batch)
        if isinstance(batch, Batch):
            self._tokens += batch.num_target_tokens
        if trainer.global_step % self._every == 0 and trainer.is_global_zero and trainer.logger is not None:
            trainer.logger.log_metrics(self._counters(), step=trainer.global_step - 1)

    def _cpu_seconds(self) -> float:
        return cpu_seconds() if self._children else time.process_time()

    def _counters(self) -> dict[str, float]:
        seconds = self._cpu_seconds() - self._started - self._validation
        resident = psutil.Process().memory_info().rss
        counters = {
            "time/training_cpu_seconds": seconds,
            "time/validation_cpu_seconds": self._validation,
            "speed/sentences": self._sentences,
            "system/resident_megabytes": resident / 1e6,
            "system/peak_resident_megabytes": max(resident, peak_resident_bytes()) / 1e6,
        }
        if self._tokens:
            tokens, before = self._last
            counters["speed/target_tokens"] = self._tokens
            if seconds > before:  # the clock has ticked since
                counters["speed/target_tokens_per_cpu_second"] = (self._tokens - tokens) / (seconds - before)
                self._last = (self._tokens, seconds)
        return counters


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


def peak_resident_bytes() -> int:
    """The most memory that this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
