"""The cell's product with the last tokens, for all steps at once where all of them are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.model.decoders.body import DecoderBody
from attnlab.model.decoders.step import Token
from attnlab.model.fast.linear import fast_linear


@dataclass(frozen=True)
class ProjectedToken(Token):
    """A last token with its part of the cell's product, W_e e(y_{t-1}) + b."""

    projected: Tensor  # (B, G)
    other_weights: Tensor  # (G, F + D), of the inputs beside the token


class FastDecoderBody(DecoderBody):
    """W [e(y_{t-1}); others] + b as the sum of two products.

    The first of them is made before the loop.
    """

    def known_tokens(self, embedded: Tensor) -> list[Token]:
        cell, size = self.cell.cells[0], embedded.shape[-1]
        weight = cell.weight_ih
        projected = fast_linear(embedded, weight[:, :size], cell.bias_ih)  # (T, B, G)
        # One slice for all steps: its gradients are collected by it
        other_weights = weight[:, size:]
        return [
            ProjectedToken(*each, other_weights)
            for each in zip(embedded.unbind(), projected.unbind(), strict=True)
        ]

    def from_input(self, token: Token, others: Sequence[Tensor]) -> Tensor:
        if not isinstance(token, ProjectedToken):
            return super().from_input(token, others)
        if not others:
            return token.projected
        return token.projected + fast_linear(torch.cat(list(others), dim=-1), token.other_weights)
