"""A hand-made model that writes `<unk>` for each source token and looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from attnlab.batch import EOS, UNK, Batch, Padding
from attnlab.model.outputs.linear import LinearOutput
from attnlab.model.outputs.output import Reading


@dataclass(frozen=True)
class Tensors:
    """The source's mask, and how many tokens were written."""

    mask: Tensor  # (B, S)
    written: Tensor  # (B,)

    def select(self, rows: Tensor) -> Tensors:
        return Tensors(self.mask[rows], self.written[rows])


class Copier(nn.Module):
    """A model that copies: at step t it attends to `<eos>`, source token t and the first position.

    The weights are 0.5, 0.3 and 0.2; the first position may be a pad. Where source token t is
    `<eos>`, it ends; with `attends` False it returns no attention weights.
    """

    def __init__(self, vocabulary_size: int, attends: bool = True) -> None:
        super().__init__()
        self.attends = attends
        self.padding = Padding()
        self.output = LinearOutput(readout_size=1, target_vocabulary_size=vocabulary_size)
        for parameter in self.output.parameters():
            nn.init.zeros_(parameter)

    def encode(
        self, source: Tensor, source_mask: Tensor, intervention: object = None
    ) -> tuple[Tensors, Tensors]:
        start = Tensors(source_mask, torch.zeros(len(source), dtype=torch.long))
        return start, start

    def step(
        self, tokens: Tensor, state: Tensors, memory: Tensors
    ) -> tuple[Tensor, Tensors, Tensor | None]:
        # A beam shares its sentence's memory
        mask = memory.mask.repeat_interleave(len(tokens) // len(memory.mask), 0)
        lengths = mask.sum(1)
        first = mask.int().argmax(1)
        rows = torch.arange(len(tokens))
        weights = torch.zeros(mask.shape)
        weights[:, 0] += 0.2
        weights[rows, first + torch.minimum(state.written, lengths - 1)] += 0.3
        weights[rows, first + lengths - 1] += 0.5
        logits = torch.zeros(len(tokens), self.output.out_features)
        logits[rows, torch.where(state.written < lengths - 1, UNK, EOS)] = 20.0
        return logits, Tensors(state.mask, state.written + 1), weights if self.attends else None

    def forward(self, batch: Batch) -> SimpleNamespace:
        """It has no opinion of references: each token of the vocabulary is as likely as another."""
        reading = Reading(torch.zeros(*batch.target_input.shape, 1))
        return SimpleNamespace(reading=reading, attention_weights=None)
