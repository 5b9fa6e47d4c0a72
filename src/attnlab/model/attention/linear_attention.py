"""The score of linear attention."""

from __future__ import annotations

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.score import Score
from attnlab.model.normalisers.normaliser import at_least_float32


class LinearAttentionScore(Score):
    """score(s, h) = log(phi(W s) · phi(U h)), with phi(x) = elu(x) + 1, which is above 0.

    Katharopoulos et al. 2020 ("Transformers are RNNs"), equations 4 and 7: the softmax of it has
    the weights phi(q) · phi(k_i) / sum_j phi(q) · phi(k_j). Their context is a read of one matrix,
    sum_i phi(k_i) v_i^T, that does not grow with the source; here each weight is computed, so that
    it can be masked, changed and shown as any other.

    Where all entries of a vector are below 0, phi is taken relative to the greatest of them, so
    that nothing underflows, however small they are. A product below 1e-38 beside those entries
    counts as 1e-38.

    Args:
        size: width A of W s and U h.
    """

    is_logarithm = True

    def __init__(self, size: PositiveInt, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.projected_key_size = size
        self.W = nn.Linear(query_size, size, bias=False)
        self.U = nn.Linear(key_size, size, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.U(keys)

    def finish_keys(self, keys: Tensor) -> Tensor:
        """phi of the keys, and the logarithm of what it was divided by: (B, S, A + 1)."""
        return torch.cat(_features(keys), dim=-1)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        query_features, query_shift = _features(self.W(query))
        key_features, key_shift = keys[..., :-1], keys[..., -1:]
        product = at_least_float32(query_features @ key_features.transpose(1, 2))  # (B, T, S)
        log_product = product.clamp(min=torch.finfo(torch.float32).tiny).log()
        return log_product + query_shift + key_shift.transpose(1, 2)


def _features(x: Tensor) -> tuple[Tensor, Tensor]:
    """phi(x) / exp(m) and m, the greatest entry where it is below 0, else 0.

    x (..., A) -> (..., A) and (..., 1), in float32 at least. m has no gradient: the product is the
    same with any m.
    """
    x = at_least_float32(x)
    m = x.detach().amax(-1, keepdim=True).clamp(max=0)
    return (x.clamp(max=0) - m).exp() + x.relu(), m
