"""Gates on the context: a decoder may take less of what its attention found.

Axes: B batch, T target, Q query, N heads, C all heads' contexts side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn


class ContextGate(nn.Module, ABC):
    """The base class of gates, which make another context of the query and the context.

    With several heads the gate stands before the layer that joins them (Qiu et al. 2025, position
    G1). Its constructor takes its settings, and whichever of the run-time arguments it needs:
    `query_size` Q, `context_size` C and `heads` N.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("query_size", "context_size", "heads")

    @abstractmethod
    def forward(self, query: Tensor, context: Tensor) -> Tensor:
        """query (B, T, Q) and context (B, T, C) -> the context (B, T, C) that goes on."""


class ElementwiseGate(ContextGate):
    """c'_t = sigmoid(W q_t + b) * c_t, entry by entry (Qiu et al. 2025)."""

    def __init__(self, *, query_size: int, context_size: int) -> None:
        super().__init__()
        self.W = nn.Linear(query_size, context_size)

    def forward(self, query: Tensor, context: Tensor) -> Tensor:
        return torch.sigmoid(self.W(query)) * context


class PerHeadGate(ContextGate):
    """c'_t = sigmoid(w · q_t + b) c_t, one number for each head.

    With one head it is the gating scalar of Xu et al. 2015 (section 4.2.1), where the query is the
    state before the step.
    """

    def __init__(self, *, query_size: int, heads: int) -> None:
        super().__init__()
        self.W = nn.Linear(query_size, heads)

    def forward(self, query: Tensor, context: Tensor) -> Tensor:
        openness = torch.sigmoid(self.W(query))  # (B, T, N)
        of_heads = context.unflatten(-1, (openness.shape[-1], -1))  # (B, T, N, C / N)
        return (openness.unsqueeze(-1) * of_heads).flatten(-2)
