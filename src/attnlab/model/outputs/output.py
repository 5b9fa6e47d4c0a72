"""The base class of outputs: from what a step found to probabilities over the vocabulary.

Axes: R readout, V vocabulary; leading axes are (B,) for one step, (B, T) for all steps, or (N,) for
chosen ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.memory import Memory
from attnlab.model.attention.uniform import UniformScore
from attnlab.model.decoders.step import StepOutput
from attnlab.model.outputs.likelihood import SummedLoss, at_least_single, smoothed_nll
from attnlab.model.readouts import Readout


@dataclass(frozen=True)
class Reading:
    """What an output reads of one step, or of many.

    An output may derive a record with further fields from it: tensors with the same leading axes.
    """

    readout: Tensor  # (..., R)

    def __getitem__(self, index: Any) -> Self:
        """The reading of some steps: each tensor at this index of its leading axes."""
        return self.with_each(lambda tensor: tensor[index])

    def with_each(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The reading with each of its tensors changed."""
        return replace(self, **{name: change(x) for name, x in self.columns().items()})

    def columns(self) -> dict[str, Tensor]:
        """Its tensors that have the leading axes, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def select(self, rows: Tensor) -> Self:
        """The reading of some rows of the batch, in their order; a row may be named twice."""
        return self[rows]


ReadingT = TypeVar("ReadingT", bound=Reading)


def stacked(readings: Sequence[ReadingT]) -> ReadingT:
    """The readings (B, ...) of T steps as one of all steps, (B, T, ...)."""
    first = readings[0]
    columns = [reading.columns() for reading in readings]
    stacks = {name: torch.stack([each[name] for each in columns], dim=1) for name in columns[0]}
    return replace(first, **stacks)


def unstacked(reading: ReadingT) -> list[ReadingT]:
    """The reading (B, T, ...) of all steps as one of each, (B, ...)."""
    columns = {name: x.unbind(1) for name, x in reading.columns().items()}
    steps = len(next(iter(columns.values())))
    return [
        replace(reading, **{name: each[t] for name, each in columns.items()}) for t in range(steps)
    ]


def source_of_weights(step: StepOutput, memory: Memory) -> tuple[Tensor, Tensor]:
    """The weights, the mean over the heads, and the source's tokens that they belong to.

    Both are (B, S) for one step, (B, T, S) for all; the memory may have fewer rows.
    """
    assert step.attention_weights is not None
    assert memory.source is not None
    weights = step.attention_weights.mean(1)  # of (B, N, S) or (B, N, T, S)
    source = memory.source.repeat_interleave(len(weights) // len(memory.source), dim=0)
    if weights.dim() == 3:
        source = source.unsqueeze(1)
    return weights, source.expand(weights.shape)


class Output(nn.Module, ABC, Generic[ReadingT]):
    """Probabilities of the next token.

    It stands outside the step, so that training can apply it to all steps at once. A subclass
    defines `forward` and, where it reads more than the readout, `read`. Its constructor takes its
    settings, and whichever of the run-time arguments it needs: the widths `readout_size` R,
    `hidden_size` H, `context_size` D (0 where the context does not go into the readout) and
    `embedding_size` E, and `target_vocabulary_size` V.

    needs_attention: whether it reads the memory, and attention weights as a distribution over it.
    copies: whether it writes tokens of the source, so that both sides must share a vocabulary.
    only_copies: whether it writes no others, and reads the attention weights alone: neither the
        readout nor the context.
    reads_each_value: whether it applies the readout to each of the source's values, in place of
        their mean, the context.
    has_posterior: whether `posterior` says where each token of a known target comes from.
    follows_alignment: whether the probabilities of a step also depend on the reading of the step
        before, and on the token that was written there.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = (
        "readout_size",
        "hidden_size",
        "context_size",
        "embedding_size",
        "target_vocabulary_size",
    )

    needs_attention: ClassVar[bool] = False
    copies: ClassVar[bool] = False
    only_copies: ClassVar[bool] = False
    reads_each_value: ClassVar[bool] = False
    has_posterior: ClassVar[bool] = False
    follows_alignment: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()

    @property
    @abstractmethod
    def vocabulary(self) -> nn.Linear | None:
        """The layer from the readout to the vocabulary, which embeddings may be tied to.

        None for an output without one.
        """

    def read(self, readout: Tensor, step: StepOutput, memory: Memory) -> ReadingT:
        """What `forward` reads.

        Args:
            readout: (..., R), of this step or of all steps.
            step: the decoder's own output, of as many steps.
            memory: of the source. It may have fewer rows, each for as many rows of one step, which
                stand side by side.
        """
        return Reading(readout)  # type: ignore[return-value]  # of an output that reads no more

    def read_with(
        self, layer: Readout, readout: Tensor, step: StepOutput, memory: Memory
    ) -> ReadingT:
        """`read`, for an output that applies the layer of the readout itself."""
        return self.read(readout, step, memory)

    def follow(self, reading: ReadingT, before: ReadingT | None, tokens: Tensor) -> ReadingT:
        """The reading of a step, where the step before was read so.

        Args:
            before: of the step before, as this method returned it; None at the first step.
            tokens: (B,), what was written there.
        """
        return reading

    def of_target(self, reading: ReadingT, labels: Tensor, mask: Tensor) -> ReadingT:
        """The reading (B, T, ...) of all steps, where the target is known.

        Args:
            labels: (B, T), its tokens.
            mask: (B, T) bool, those that are real.
        """
        return reading

    def alignment(self, reading: ReadingT) -> Tensor | None:
        """Where the next token of a step comes from: (B, S), or None for the weights.

        The token itself is not known yet.
        """
        return None

    def posterior(self, reading: ReadingT, mask: Tensor) -> Tensor | None:
        """Where each token of a known target comes from: (B, T, S), or None for the weights.

        reading: as `of_target` returned it.
        """
        return None

    @abstractmethod
    def forward(self, reading: ReadingT) -> Tensor:
        """Logits (..., V), or log-probabilities, which are logits of themselves."""

    def summed_loss(self, reading: ReadingT, labels: Tensor, label_smoothing: float) -> SummedLoss:
        """The loss of N tokens, whose labels are (N,); see `attnlab.training.loss.summed_loss`."""
        log_probabilities = at_least_single(self(reading)).log_softmax(-1)
        return smoothed_nll(log_probabilities, labels, label_smoothing)


def check_attention(output: type[Output], attention: Attention | MultiHeadAttention | None) -> None:
    """Raise ValueError where an output needs attention weights that this attention does not make.

    attention: of the decoder; None where nothing attends.
    """
    if not output.needs_attention:
        return
    name = output.__name__
    if attention is None:
        raise ValueError(
            f"output {name} goes by the attention weights, but model.attention is null; choose a "
            "model/attention and a model/decoder that attends, or model/output=linear"
        )
    if not attention.makes_distributions:
        raise ValueError(
            f"output {name} reads the attention weights as a distribution over the source, but "
            "these need not sum to 1; choose model/normaliser=softmax, a model/history that keeps "
            "the sum, model.scope.renormalise=true with a local-p scope, or model/output=linear"
        )


def check_alignment(
    output: type[Output], attention: Attention | MultiHeadAttention | None, context_size: int
) -> None:
    """Raise ValueError where an output cannot sum over what its decoder is aligned with.

    context_size: 0 where the context does not go into the readout.
    """
    if not output.reads_each_value:
        return
    name = output.__name__
    if isinstance(attention, MultiHeadAttention):
        raise ValueError(
            f"output {name} sums over the source tokens that one attention may choose, but this "
            "one has several heads; choose model/heads=one, or model/output=linear"
        )
    if attention is not None and getattr(attention.normaliser, "is_hard", False):
        # The logarithm of a weight of 0 has no gradient, and that of the only other one makes the
        # chosen token likelier, whatever followed.
        raise ValueError(
            f"output {name} sums over all source tokens that a token may come from, but normaliser "
            f"{type(attention.normaliser).__name__} gives one of them all the weight, so that "
            "nothing is learned of the others; choose model/normaliser=softmax, or "
            "model/output=linear"
        )
    if attention is not None and (attention.gate is not None or attention.dropout.p > 0):
        raise ValueError(
            f"output {name} reads a value of the source in place of the context, so that a gate or "
            "dropout on the way to the context does nothing; choose model/gate=none and "
            "model.attention_dropout=0, or model/output=linear"
        )
    if context_size == 0:
        raise ValueError(
            f"output {name} reads a value of the source in place of the context, but this decoder "
            "hands its readout no context; choose a model.decoder.context that goes into the "
            "readout, or model/output=linear"
        )


def check_pointing(
    output: type[Output],
    attention: Attention | MultiHeadAttention | None,
    readout: Readout,
    *,
    has_state: bool,
    feeds_context: bool,
) -> None:
    """Raise ValueError where an output that only copies leaves parts without anything to learn.

    has_state: False for a decoder whose steps have no recurrent state.
    feeds_context: whether a context goes into a cell.
    """
    if not output.only_copies or attention is None:
        return
    name = f"output {output.__name__} reads the attention weights alone"
    heads = attention.attentions if isinstance(attention, MultiHeadAttention) else [attention]
    if any(isinstance(head.score, UniformScore) for head in heads):
        raise ValueError(
            f"{name}, and the uniform score has nothing to learn; choose another model/attention"
        )
    if any(getattr(head.normaliser, "is_hard", False) for head in heads):
        raise ValueError(
            f"{name}, and learns nothing of a token whose weight is 0, as all but one are with "
            "this normaliser; choose model/normaliser=softmax"
        )
    if not has_state:
        raise ValueError(
            f"{name}, so that nothing reads what a Transformer's last block finds; choose a "
            "recurrent model/decoder"
        )
    if any(True for _ in readout.parameters()):
        raise ValueError(
            f"{name}, so that the readout {type(readout).__name__} would never learn; choose "
            "model/readout=plain, or state where no context goes into the readout"
        )
    makes_context = isinstance(attention, MultiHeadAttention) or attention.gate is not None
    if makes_context and not feeds_context:
        raise ValueError(
            f"{name}, so that nothing reads the context that several heads or a gate make; choose "
            "a model.decoder.context that goes into the cell, or model/heads=one and "
            "model/gate=none"
        )
    drops = isinstance(attention, Attention) and attention.dropout.p > 0
    if drops and not feeds_context:
        raise ValueError(
            f"{name}, so that nothing reads the context whose weights are dropped; choose "
            "model.attention_dropout=0, or a model.decoder.context that goes into the cell"
        )


def check_vocabularies(output: type[Output], source: int, target: int) -> None:
    """Raise ValueError where an output copies, but the vocabularies differ in size."""
    if output.copies and source != target:
        raise ValueError(
            f"output {output.__name__} copies tokens of the source, so that both sides need one "
            f"vocabulary, but the source has {source} tokens and the target {target}; choose "
            "data.tokenizer.joint=true, or model/output=linear"
        )
