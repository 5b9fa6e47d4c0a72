"""The LightningModule: what happens at a step, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torchmetrics import MeanMetric

from attnlab.batch import Batch
from attnlab.model.seq2seq import Seq2Seq
from attnlab.training.loss import summed_nll
from attnlab.training.settings import FREE_RUNNING, PERPLEXITY, TOKEN_NLL, Training


class TextMetrics(Protocol):
    """Metrics on decoded text, such as BLEU."""

    def update(self, hypotheses: list[str], references: list[str]) -> None: ...
    def compute(self) -> dict[str, float]: ...
    def reset(self) -> None: ...


class Seq2SeqModule(pl.LightningModule):
    """Trains a Seq2Seq model and validates it twice: teacher-forced, and running freely.

    Args:
        model: the model.
        settings: how to train it.
        text_metrics: what measures the decoded text.
        decode: target ids to text.
        references: row numbers of the validation split to target texts.
    """

    def __init__(
        self,
        model: Seq2Seq,
        settings: Training,
        text_metrics: TextMetrics,
        decode: Callable[[list[int]], str],
        references: Callable[[Sequence[int]], list[str]],
    ) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        self.text_metrics = text_metrics
        self.decode = decode
        self.references = references
        self.training_nll = MeanMetric()
        self.validation_nll = MeanMetric()

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        coins = self.settings.teacher_forcing.toss(self.global_step, batch.target_mask)
        nll = summed_nll(self.model.output, self.model(batch, coins), batch)
        tokens = batch.num_target_tokens
        self.log("train/token_nll", nll.detach() / tokens)
        # Weighted by tokens, the epoch's mean is the mean over the epoch's tokens and not a mean of batch means.
        # A metric of its own: over processes, `log(..., sync_dist=True)` rounds the number of tokens down.
        self.training_nll.update(nll.detach() / tokens, weight=tokens)
        self.log("train/epoch_token_nll", self.training_nll, on_step=False, on_epoch=True)
        self.log("train/teacher_forcing_ratio", self.settings.teacher_forcing.ratio(self.global_step))
        return nll / self._tokens_of_a_process(tokens)

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        tokens = batch.num_target_tokens
        nll = summed_nll(self.model.output, self.model(batch), batch)
        self.validation_nll.update(nll / tokens, weight=tokens)
        found = self.settings.validation_search(self.model, batch.source, batch.source_mask)
        hypotheses = [self.decode(best[0].tokens) for best in found]
        self.text_metrics.update(hypotheses, self.references(batch.rows.tolist()))

    def on_validation_epoch_end(self) -> None:
        token_nll = self.validation_nll.compute()
        free_running = {f"{FREE_RUNNING}/{name}": value for name, value in self.text_metrics.compute().items()}
        measured: dict[str, Any] = {TOKEN_NLL: token_nll, PERPLEXITY: token_nll.exp(), **free_running}
        self.log_dict(measured)
        self.validation_nll.reset()
        self.text_metrics.reset()
        scheduler = self.lr_schedulers()
        if isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(measured[self.settings.monitored_metric])

    def configure_gradient_clipping(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """Clip by the norm over all parameters, and log the norm as it was before."""
        limit = self.settings.gradient_clip or torch.inf
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self.log("train/gradient_norm", norm)
        self.log("train/learning_rate", optimizer.param_groups[0]["lr"])

    def configure_optimizers(self) -> Any:
        optimizer = self.settings.optimizer(self.model.parameters())
        steps = int(self.trainer.estimated_stepping_batches)
        entry = self.settings.schedule(optimizer, steps, self.settings.monitored_metric, self.settings.monitor_mode)
        return {"optimizer": optimizer, "lr_scheduler": entry}

    def _tokens_of_a_process(self, tokens: int) -> float:
        """The mean number of tokens a process has in this global batch.

        Processes average their gradients; with the same divisor in each, the average is the gradient of the mean
        over all tokens of the global batch.
        """
        if self.trainer.world_size == 1:
            return tokens
        total = torch.tensor(float(tokens), device=self.device)
        torch.distributed.all_reduce(total)
        return total.item() / self.trainer.world_size
