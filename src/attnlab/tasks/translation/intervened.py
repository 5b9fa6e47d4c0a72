"""A translation model under an intervention, as a search takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attnlab.model.attention.intervention import Intervention
from attnlab.model.decoders.step import DecoderState
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class Intervened:
    """A model whose attention is changed while it reads and writes."""

    model: Seq2Seq
    intervention: Intervention

    def encode(self, source: Tensor, source_mask: Tensor) -> tuple[Any, DecoderState]:
        return self.model.encode(source, source_mask, self.intervention)

    def step(
        self, tokens: Tensor, state: DecoderState, memory: Any
    ) -> tuple[Tensor, DecoderState, Tensor | None]:
        return self.model.step(tokens, state, memory)
