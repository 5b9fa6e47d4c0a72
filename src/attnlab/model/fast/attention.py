"""The projection of the keys, once a batch, by the products of `fast_linear`."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.attention.attention import Attention
from attnlab.model.fast.linear import fast_linear
from attnlab.model.fast.mode import LinearMode


class FastAttention(Attention):
    """Projects the keys by `fast_linear`, whatever layers the score uses.

    A score may multiply its keys by a part of a weight, without a layer whose class could say how.
    So each `linear` of the projection is `fast_linear`.
    """

    def project(
        self, outputs: Tensor, positions: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        with _FastProducts():
            return super().project(outputs, positions, mask)


class _FastProducts(LinearMode):
    # Too slow for the steps of a decoder, of which there are many.
    product = staticmethod(fast_linear)
