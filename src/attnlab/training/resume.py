"""Exact resume from a checkpoint: the state that Lightning's own checkpoints leave out."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torchmetrics import MeanMetric

from attnlab.errors import ExperimentError
from attnlab.training.spool import MetricSpool

_KEY = "attnlab"


class ExactResume(pl.Callback):
    """Saves in every checkpoint, and restores:

    - the random states of torch, CUDA, numpy and Python, of each process;
    - the means over the epoch so far, of each process (Lightning saves only the first one's);
    - the offset of the metric spool: what was written after it is written again.

    The loader saves its position in the data itself (see `attnlab.data.datamodule`).

    saved: called before the step that follows a checkpoint, with the spool's offset in it. Records
        up to there are final; later ones may be written a second time after a resume, with other
        times.
    """

    def __init__(self, spool: MetricSpool, saved: Callable[[int], None]) -> None:
        self._spool = spool
        self._saved = saved
        self._reached: int | None = None
        self._own: dict[str, Any] | None = None  # this process's state, until it is restored

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]
    ) -> None:
        self._reached = self._spool.size()
        own = {"random": random_states(), "means": _means(pl_module)}
        processes: list[Any] = [own] * trainer.world_size
        if trainer.world_size > 1:
            torch.distributed.all_gather_object(processes, own)
        checkpoint[_KEY] = {"processes": processes, "spool": self._reached}

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]
    ) -> None:
        saved = checkpoint[_KEY]
        processes = saved["processes"]
        if len(processes) != trainer.world_size:
            raise ExperimentError(
                f"the training started with {len(processes)} process(es) and cannot "
                f"resume with {trainer.world_size}; choose hardware.devices and hardware.nodes as "
                "before, or rerun=true"
            )
        self._own = processes[trainer.global_rank]
        if trainer.is_global_zero:
            self._spool.cut(saved["spool"])
        self._reached = saved["spool"]  # a process killed after saving may not have reported it

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # Not earlier, because the setup of a training may draw random numbers too.
        if self._own is not None:
            restore_random_states(self._own["random"])
            _restore_means(pl_module, self._own["means"])
            self._own = None

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        if self._reached is not None:
            self._saved(self._reached)
            self._reached = None

    def on_exception(self, *args: Any, **kwargs: Any) -> None:
        # A stop signal comes right after a checkpoint.
        self.on_train_batch_start()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # When Lightning resumes at the end of an epoch, it still counts as restarting in the next
        # epoch, which then gets no batches.
        trainer.fit_loop.epoch_loop.restarting = False


def random_states() -> dict[str, Any]:
    """The states of all random number generators, in containers that load without a pickle."""
    version, internal, gauss = random.getstate()
    algorithm, keys, *rest = np.random.get_state(legacy=True)
    numpy_keys = torch.from_numpy(np.asarray(keys, dtype=np.int64))
    # Of the own device alone: a resumed training may see more of them, or others.
    cuda = [torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else []
    return {
        "python": [version, list(internal), gauss],
        "numpy": [algorithm, numpy_keys, *rest],
        "torch": torch.get_rng_state(),
        "cuda": cuda,
    }


def restore_random_states(states: dict[str, Any]) -> None:
    """Set all random number generators to what `random_states` returned."""
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))

    algorithm, keys, *rest = states["numpy"]
    np.random.set_state((algorithm, keys.numpy().astype(np.uint32), *rest))

    torch.set_rng_state(states["torch"])
    if states["cuda"]:
        torch.cuda.set_rng_state(states["cuda"][0])


def _means(module: pl.LightningModule) -> dict[str, dict[str, Tensor]]:
    """The state of every running mean, by name."""
    means: dict[str, dict[str, Tensor]] = {}
    for name, metric in module.named_modules():
        if not isinstance(metric, MeanMetric):
            continue
        state = {}
        for field, value in metric.metric_state.items():
            state[field] = torch.as_tensor(value).cpu().clone()
        means[name] = state
    return means


def _restore_means(module: pl.LightningModule, means: dict[str, dict[str, Tensor]]) -> None:
    metrics = dict(module.named_modules())
    for name, state in means.items():
        for field, value in state.items():
            setattr(metrics[name], field, value.to(module.device))
