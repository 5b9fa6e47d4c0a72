"""A pass over the target: what it finds in the end, and what it has found so far.

Axes: B batch, T target length, S source length.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from attnlab.model.attention.draws import Drawn
from attnlab.model.decoders.step import StepOutput
from attnlab.model.outputs.output import Reading
from attnlab.model.pads import reorder


@dataclass(frozen=True)
class Unrolled:
    """A pass over the target: what the output reads, and where the attention looked.

    attention_weights are the mean over the heads, or where the output says that each token of the
    target comes from. history_loss is that of the attention's history,
    summed over the real target tokens and weighted by its `loss_weight`; None where it has none.
    draw_log_probability and draw_entropy are those of the weights that training drew (`Drawn`);
    None where it draws none. They are fields of their own, since a CUDA graph takes a pass apart
    into tensors (training/graphs.py).
    """

    reading: Reading  # (B, T, ...)
    attention_weights: Tensor | None  # (B, T, S)
    history_loss: Tensor | None = None  # ()
    draw_log_probability: Tensor | None = None  # (B, T)
    draw_entropy: Tensor | None = None  # (B, T)

    @property
    def drawn(self) -> Drawn | None:
        """What training drew."""
        if self.draw_log_probability is None or self.draw_entropy is None:
            return None
        return Drawn(self.draw_log_probability, self.draw_entropy)

    def with_drawn(self, drawn: Drawn | None) -> Unrolled:
        """The pass with what training drew, (B, T)."""
        if drawn is None:
            return self
        return replace(self, draw_log_probability=drawn.log_probability, draw_entropy=drawn.entropy)

    def reordered(self, order: Tensor) -> Unrolled:
        """The pass with the target's positions in another order, (B, T)."""

        def moved(x: Tensor | None) -> Tensor | None:
            return None if x is None else reorder(x, order)

        return replace(
            self,
            reading=self.reading.with_each(lambda x: reorder(x, order)),
            attention_weights=moved(self.attention_weights),
            draw_log_probability=moved(self.draw_log_probability),
            draw_entropy=moved(self.draw_entropy),
        )


@dataclass
class StepsSoFar:
    """What the loop over the step has found so far: an entry for each step."""

    outputs: list[StepOutput] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)  # empty where all are read at the end
    losses: list[Tensor] = field(default_factory=list)  # (B,), of the history
    drawn: list[Drawn] = field(default_factory=list)

    @property
    def last_reading(self) -> Reading | None:
        return self.readings[-1] if self.readings else None

    def note_drawn(self, drawn: Drawn | None) -> None:
        if drawn is not None:
            self.drawn.append(drawn)

    def attention_weights(self) -> Tensor | None:
        """The mean over the heads, (B, T, S)."""
        weights = [
            output.attention_weights.mean(1)
            for output in self.outputs
            if output.attention_weights is not None
        ]
        return torch.stack(weights, dim=1) if weights else None

    def all_drawn(self) -> Drawn | None:
        """What all steps drew, (B, T)."""
        if not self.drawn:
            return None
        log_probabilities = [each.log_probability.flatten() for each in self.drawn]
        entropies = [each.entropy.flatten() for each in self.drawn]
        return Drawn(torch.stack(log_probabilities, dim=1), torch.stack(entropies, dim=1))
