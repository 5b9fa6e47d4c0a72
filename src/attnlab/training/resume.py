"""Going on from a checkpoint as if nothing had happened: what Lightning's own checkpoints leave out."""

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
    """Puts into every checkpoint, and takes out of it again:

    - the random states of torch, CUDA, numpy and Python, in each process its own;
    - the means over the epoch so far, in each process those of its own share (Lightning saves the first one's alone);
    - how far the metric spool reached: what was written behind it is written again.

    The position in the data is the loader's to keep (see `attnlab.data.datamodule`).

    saved: called before the step that follows a checkpoint, with how far the spool reached in it. What lies behind may
        be written a second time, with other times: so far, and no further, it is safe to hand on.
    """

    def __init__(self, spool: MetricSpool, saved: Callable[[int], None]) -> None:
        self._spool = spool
        self._saved = saved
        self._reached: int | None = None
        self._own: dict[str, Any] | None = None  # what this process had, until it has it again

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self._reached = self._spool.size()
        own = {"random": random_states(), "means": _means(pl_module)}
        checkpoint[_KEY] = {"processes": _of_all_processes(own), "spool": self._reached}

    def on_load_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        kept = checkpoint[_KEY]
        if len(kept["processes"]) != trainer.world_size:
            raise ExperimentError(
                f"the training was begun with {len(kept['processes'])} process(es) and cannot go on with "
                f"{trainer.world_size}; choose hardware.devices and hardware.nodes as before, or rerun=true"
            )
        self._own = kept["processes"][trainer.global_rank]
        if trainer.is_global_zero:
            self._spool.cut(kept["spool"])
        self._reached = kept["spool"]  # whoever saved it may not have lived to say so

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # Not before: what sets a training up may draw as well.
        if self._own is not None:
            restore_random_states(self._own["random"])
            _restore_means(pl_module, self._own["means"])
            self._own = None

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        if self._reached is not None:
            self._saved(self._reached)
            self._reached = None

    def on_exception(self, *args: Any, **kwargs: Any) -> None:
        # Stopped on purpose, right behind a checkpoint.
        self.on_train_batch_start()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # From a checkpoint at the end of an epoch Lightning takes no step of that epoch, believes that it is still
        # restarting in the next, and gives that one no batches.
        trainer.fit_loop.epoch_loop.restarting = False


def random_states() -> dict[str, Any]:
    """Every state that a draw may come from, in containers that load without a pickle."""
    version, internal, gauss = random.getstate()
    algorithm, keys, *rest = np.random.get_state(legacy=True)
    return {
        "python": [version, list(internal), gauss],
        "numpy": [algorithm, torch.from_numpy(np.asarray(keys, dtype=np.int64)), *rest],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def restore_random_states(states: dict[str, Any]) -> None:
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    algorithm, keys, *rest = states["numpy"]
    np.random.set_state((algorithm, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(states["torch"])
    if states["cuda"]:
        torch.cuda.set_rng_state_all(states["cuda"])


def _means(module: pl.LightningModule) -> dict[str, dict[str, Tensor]]:
    """The state of every running mean, by name."""
    return {
        name: {field: torch.as_tensor(value).cpu().clone() for field, value in metric.metric_state.items()}
        for name, metric in module.named_modules()
        if isinstance(metric, MeanMetric)
    }


def _restore_means(module: pl.LightningModule, means: dict[str, dict[str, Tensor]]) -> None:
    metrics = dict(module.named_modules())
    for name, state in means.items():
        for field, value in state.items():
            setattr(metrics[name], field, value.to(module.device))


def _of_all_processes(own: dict[str, Any]) -> list[dict[str, Any]]:
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return [own]
    found: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, own)
    return found
