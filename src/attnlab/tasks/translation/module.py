"""The LightningModule of translation: training, validation and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from torch import Tensor
from torchmetrics import Metric

from attnlab.batch import Batch
from attnlab.model.attention.intervention import Intervention
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.unrolled import Unrolled
from attnlab.search.search import Stepwise
from attnlab.tasks.translation.intervened import Intervened
from attnlab.tasks.translation.settings import (
    ATTENTION_IS_ON,
    FREE_RUNNING,
    PERPLEXITY,
    TOKEN_NLL,
    TranslationTraining,
)
from attnlab.training.attention_losses.attention_loss import Links, Looks, linked_places
from attnlab.training.graphs import GraphedPasses, lengthened
from attnlab.training.loss import summed_loss, summed_nll, token_losses
from attnlab.training.module import LabModule, WeightedMean
from attnlab.training.reinforcement import DRAW_ENTROPY
from attnlab.training.teacher_forcing import toss


class Term(NamedTuple):
    """A part of the loss. value: summed over the batch."""

    name: str
    value: Tensor
    weight: float = 1.0


class Seq2SeqModule(LabModule):
    """Trains a Seq2Seq model and validates it twice: teacher-forced and free-running.

    Args:
        text_metrics: updated with hypotheses and references as text.
        decode: turns the target ids of rows of the validation split into texts.
        references: gives the target texts of rows of the validation split.
        seed: of the teacher-forcing coins.
        links: the gold links of rows of the training split, for an attention loss that needs them.
        graphs: whether passes in training are CUDA graphs.
    """

    epoch_metric = "train/epoch_token_nll"

    def __init__(
        self,
        model: Seq2Seq,
        settings: TranslationTraining,
        text_metrics: Metric,
        decode: Callable[[Sequence[int], Sequence[list[int]]], list[str]],
        references: Callable[[Sequence[int]], list[str]],
        seed: int,
        links: Links | None = None,
        graphs: bool = False,
    ) -> None:
        attention = model.decoder.attention
        super().__init__(model, settings, None if attention is None else attention.drawing)
        self.graphed_passes = GraphedPasses(self.model) if graphs else None
        self.text_metrics = text_metrics
        self.decode = decode
        self.references = references
        self.seed = seed
        self.links = links
        self.validation_nll = WeightedMean()

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        schedule = self.settings.attention_schedule
        # What stands in the place of the attention while the schedule has it switched off
        instead = None if schedule is None else schedule.at_step(self.global_step)
        batch, unrolled = self._pass(batch, instead)
        loss, shown = self._losses(batch, unrolled, attends=instead is None)

        # Weighted by tokens, it is the mean over the epoch's tokens and not a mean of batch means.
        # It is a separate metric because `log(..., sync_dist=True)` rounds the number of tokens
        # down when there are several processes.
        tokens = batch.num_target_tokens
        self.training_nll.update(shown["token_nll"].detach() / tokens, weight=tokens)
        if self.is_recorded:
            ratio = self.settings.teacher_forcing.ratio_at(self.global_step)
            self.log("train/teacher_forcing_ratio", ratio)
            if schedule is not None:
                self.log(ATTENTION_IS_ON, float(instead is None))
        return self.mean_over_batch(loss, tokens, shown)

    def _pass(self, batch: Batch, instead: Intervention | None) -> tuple[Batch, Unrolled]:
        """The pass over the target, teacher-forced or not, and the batch that it read.

        A CUDA graph takes the passes that are alike in every step, and pads the batch for it.
        """
        forcing = self.settings.teacher_forcing
        feed_reference = toss(forcing, self.global_step, batch, self.seed)
        if self.graphed_passes is not None and feed_reference is None and instead is None:
            batch = lengthened(batch, self.model.padding)
            return batch, self.graphed_passes(batch)
        samples = forcing.guess == "sample"
        return batch, self.model(batch, feed_reference, samples, intervention=instead)

    def _losses(
        self, batch: Batch, unrolled: Unrolled, attends: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss, and what is logged of it by name; all are sums over the batch's tokens."""
        smoothing = self.settings.label_smoothing
        drawn = unrolled.drawn if attends else None
        if self.reinforcement is None or drawn is None:
            loss, nll = summed_loss(self.model.output, unrolled, batch, smoothing)
            shown = {"token_nll": nll}
        else:
            each = token_losses(self.model.output, unrolled, batch, smoothing)
            loss, nll = each.summed()
            loss = loss + self.reinforcement(each.loss, batch.target_mask, drawn)
            entropy = self.reinforcement.entropy_of(batch.target_mask, drawn)
            shown = {"token_nll": nll, DRAW_ENTROPY: entropy}

        if attends:
            for term in self._terms_of_attention(batch, unrolled):
                loss = loss + term.weight * term.value
                shown[term.name] = term.value
        if smoothing or len(shown) > 1:
            shown["loss"] = loss
        return loss, shown

    def _terms_of_attention(self, batch: Batch, unrolled: Unrolled) -> Iterator[Term]:
        """What the attention's history and a loss on its weights add to the loss."""
        history, attention_loss = self.model.decoder.history, self.settings.attention_loss
        if history is not None and unrolled.history_loss is not None:
            yield Term(str(history.loss_name), unrolled.history_loss)
        if attention_loss is not None:
            value = attention_loss.summed(self.looks(batch, unrolled))
            yield Term(attention_loss.name, value, attention_loss.weight)

    def looks(self, batch: Batch, unrolled: Unrolled) -> Looks:
        """Where the batch looked, with its gold links where the attention loss asks for them."""
        assert unrolled.attention_weights is not None
        linked = None
        if self.links is not None:
            linked = linked_places(self.links, batch, batch.target_mask)
        return Looks(
            unrolled.attention_weights, batch.source, batch.source_mask, batch.target_mask, linked
        )

    @property
    def validated_intervention(self) -> Intervention | None:
        """What stands in the place of the attention in a validation, as in the last step."""
        schedule = self.settings.attention_schedule
        return None if schedule is None else schedule.after_steps(self.global_step)

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        intervention = self.validated_intervention
        tokens = batch.num_target_tokens
        nll = summed_nll(self.model.output, self.model(batch, intervention=intervention), batch)
        self.validation_nll.update(nll / tokens, weight=tokens)
        model: Stepwise = self.model
        if intervention is not None:
            model = Intervened(self.model, intervention)
        found = self.settings.validation_search(model, batch.source, batch.source_mask)
        rows = batch.rows.tolist()
        hypotheses = self.decode(rows, [best[0].tokens for best in found])
        self.text_metrics.update(hypotheses, self.references(rows))

    def on_validation_epoch_end(self) -> None:
        token_nll = self.validation_nll.compute()
        free_running = {
            f"{FREE_RUNNING}/{name}": value for name, value in self.text_metrics.compute().items()
        }
        self.log_validation(
            token_nll, {TOKEN_NLL: token_nll, PERPLEXITY: token_nll.exp(), **free_running}
        )
        self.validation_nll.reset()
        self.text_metrics.reset()
