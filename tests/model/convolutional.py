"""Encoders of somebody's own: convolutions in place of a recurrence."""

from __future__ import annotations

import torch
from lab_extras.encoders import GatedConvolutionsEncoder
from torch import Tensor

from attnlab.model.encoders.encoder import Encoded
from attnlab.model.recurrence import RecurrentState


class NamelessEncoder(GatedConvolutionsEncoder):
    """The same, without telling which layer embeds the source."""

    def __init__(self, embedding_size: int, *, source_vocabulary_size: int) -> None:
        sizes = {"embedding_size": embedding_size, "blocks": 1, "kernel": 3, "summary_size": 5}
        super().__init__(**sizes, dropout=0.0, source_vocabulary_size=source_vocabulary_size)
        self.words = self.embedding
        self.embedding = None

    def forward(self, source: Tensor, source_mask: Tensor) -> Encoded:
        x = self.words(source).masked_fill(~source_mask.unsqueeze(2), 0)
        mean = x.sum(1) / source_mask.sum(1, keepdim=True)
        return Encoded(x, RecurrentState(torch.tanh(self.summary(mean)).unsqueeze(0)))
