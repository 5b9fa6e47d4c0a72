"""The score of fast weights that the delta rule writes."""

from __future__ import annotations

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.score import Score, unit
from attnlab.model.normalisers.normaliser import at_least_float32


class DeltaRuleScore(Score):
    """score(s, h_i) = a_i, with sum_i a_i v_i = M_S W s: a read of a matrix that the source wrote.

    M_i = M_{i-1} + beta_i (v_i - M_{i-1} k_i) k_i^T, M_0 = 0, with k_i = U h_i / |U h_i| and
    beta_i = sigmoid(w · h_i): the value that k_i reads is moved towards v_i (Schlag, Irie and
    Schmidhuber 2021, section 4.2; keys of length 1 as in Yang et al. 2024, "Parallelizing linear
    transformers with the delta rule over sequence length"). The read is linear in the values, so
    that it has weights; they may be negative, and have no fixed sum.

    Tokens are written in the order in which they stand. Pads that the mask hides write nothing.

    Args:
        size: width A of W s and U h.
    """

    makes_weights = True

    def __init__(self, size: PositiveInt, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.projected_key_size = size
        self.W = nn.Linear(query_size, size, bias=False)
        self.U = nn.Linear(key_size, size, bias=False)
        self.w = nn.Linear(key_size, 1, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.project_source(keys, None)

    def project_source(self, keys: Tensor, mask: Tensor | None) -> Tensor:
        """The keys (B, S, A) whose products with W s are the weights.

        keys: (B, S, D).
        mask: (B, S), False at pads that write nothing.

        It solves a triangular system of S equations: its cost grows with S².
        """
        projected = self.U(keys)
        unit_keys = unit(at_least_float32(projected))
        strength = at_least_float32(self.w(keys)).sigmoid()  # (B, S, 1)
        if mask is not None:
            strength = strength.masked_fill(~mask.unsqueeze(2), 0)
        return effective_keys(unit_keys, strength).to(projected.dtype)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.W(query) @ keys.transpose(1, 2)


def effective_keys(keys: Tensor, strength: Tensor) -> Tensor:
    """E with sum_i (e_i · q) v_i = M_S q, for any values: keys (B, S, A), strength (B, S, 1).

    With u_i = beta_i (v_i - M_{i-1} k_i) the matrix is M_S = sum_i u_i k_i^T, so that for the rows
    of U, V and K: U = diag(beta) (V - L U), where L is the part of K K^T below its diagonal. The
    read is then U^T K q = V^T E q, with E = (I + diag(beta) L^T)^-1 diag(beta) K.
    """
    # Outside of autocast, which would make products in half precision of an inverse.
    with torch.autocast(keys.device.type, enabled=False):
        written = strength * keys
        overlap = written @ keys.transpose(1, 2)  # (B, S, S); what is on and below is not read
        return torch.linalg.solve_triangular(overlap, written, upper=True, unitriangular=True)
