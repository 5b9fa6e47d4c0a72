"""The logger of Lightning that writes to the spool."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from attnlab.training.spool import MetricSpool


class SpoolLogger(Logger):
    """Writes Lightning's metrics to the spool, in the first process only.

    Hyperparameters are ignored. Lightning numbers steps from 0. The spool counts the optimiser
    steps taken, from 1, like the progress lines, the checkpoints and the heat maps.
    """

    def __init__(self, spool: MetricSpool) -> None:
        super().__init__()
        self.spool = spool

    @property
    def name(self) -> str:
        return "spool"

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def log_hyperparams(
        self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any
    ) -> None:
        pass

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        values = dict(metrics)
        epoch = values.pop("epoch", None)  # Lightning puts it among the metrics
        if values:
            epoch = None if epoch is None else int(epoch)
            self.spool.append(values, (step or 0) + 1, epoch)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        self.spool.close()
