"""The LightningModule of translation: its training step, its validation and their metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pytorch_lightning as pl
from torch import Tensor
from torchmetrics import MeanMetric

from attnlab.batch import Batch
from attnlab.model.seq2seq import Seq2Seq
from attnlab.training.loss import summed_loss, summed_nll
from attnlab.training.settings import FREE_RUNNING, PERPLEXITY, TOKEN_NLL, TranslationTraining
from attnlab.training.stepping import (
    KEEP_NAN,
    check_finite,
    check_validation,
    clip_and_log,
    count_per_process,
    is_recorded,
    log_mean_of_epoch,
    optimizer_and_schedule,
    step_plateau,
)
from attnlab.training.teacher_forcing import toss


class TextMetrics(Protocol):
    """Metrics on decoded text, such as BLEU."""

    def update(self, hypotheses: list[str], references: list[str]) -> None: ...
    def compute(self) -> dict[str, float]: ...
    def reset(self) -> None: ...


class Seq2SeqModule(pl.LightningModule):
    """Trains a Seq2Seq model and validates it twice: teacher-forced and free-running.

    Args:
        model: the model.
        settings: how to train it.
        text_metrics: metrics of the decoded text.
        decode: turns target ids into text.
        references: gives the target texts of rows of the validation split.
        seed: of the teacher-forcing coins.
    """

    def __init__(
        self,
        model: Seq2Seq,
        settings: TranslationTraining,
        text_metrics: TextMetrics,
        decode: Callable[[list[int]], str],
        references: Callable[[Sequence[int]], list[str]],
        seed: int,
    ) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        self.text_metrics = text_metrics
        self.decode = decode
        self.references = references
        self.seed = seed
        self.training_nll = MeanMetric(nan_strategy=KEEP_NAN)
        self.validation_nll = MeanMetric(nan_strategy=KEEP_NAN)

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        forcing, smoothing = self.settings.teacher_forcing, self.settings.label_smoothing
        feed_reference = toss(forcing, self.global_step, batch, self.seed)
        unrolled = self.model(batch, feed_reference, sample_guesses=forcing.guess == "sample")
        loss, nll = summed_loss(self.model.output, unrolled, batch, smoothing)
        tokens = batch.num_target_tokens
        if unrolled.coverage_loss is not None:
            loss = loss + unrolled.coverage_loss
        # Weighted by tokens, it is the mean over the epoch's tokens and not a mean of batch means. It is a separate
        # metric because `log(..., sync_dist=True)` rounds the number of tokens down when there are several processes.
        self.training_nll.update(nll.detach() / tokens, weight=tokens)
        if is_recorded(self, self.settings):
            self.log("train/token_nll", nll.detach() / tokens)
            self.log("train/teacher_forcing_ratio", forcing.ratio_at(self.global_step))
            if unrolled.coverage_loss is not None:
                self.log("train/coverage_loss", unrolled.coverage_loss.detach() / tokens)
            if smoothing or unrolled.coverage_loss is not None:
                self.log("train/loss", loss.detach() / tokens)
        return loss / count_per_process(self, tokens)

    def on_train_batch_end(self, *args: Any) -> None:
        log_mean_of_epoch(self, "train/epoch_token_nll", self.training_nll)

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        tokens = batch.num_target_tokens
        nll = summed_nll(self.model.output, self.model(batch), batch)
        self.validation_nll.update(nll / tokens, weight=tokens)
        found = self.settings.validation_search(self.model, batch.source, batch.source_mask)
        hypotheses = [self.decode(best[0].tokens) for best in found]
        self.text_metrics.update(hypotheses, self.references(batch.rows.tolist()))

    def on_validation_epoch_end(self) -> None:
        token_nll = self.validation_nll.compute()
        check_validation(self, token_nll)
        free_running = {f"{FREE_RUNNING}/{name}": value for name, value in self.text_metrics.compute().items()}
        measured: dict[str, Any] = {TOKEN_NLL: token_nll, PERPLEXITY: token_nll.exp(), **free_running}
        self.log_dict(measured)
        self.validation_nll.reset()
        self.text_metrics.reset()
        step_plateau(self, self.settings, measured)

    def on_before_backward(self, loss: Tensor) -> None:
        check_finite(self, "the loss", loss, self.settings)

    def configure_gradient_clipping(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        clip_and_log(self, optimizer, self.settings)

    def configure_optimizers(self) -> Any:
        return optimizer_and_schedule(self, self.settings)
