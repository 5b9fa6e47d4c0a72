"""The projection of the keys, once a batch, by the products of `fast_linear`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from attnlab.model.attention.attention import Attention
from attnlab.model.fast.linear import fast_linear


class FastAttention(Attention):
    """A score may multiply its keys by a part of a weight, without a layer whose class could say
    how. So each `linear` of the projection is `fast_linear`.
    """

    def project(self, outputs: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        with _FastProducts():
            return super().project(outputs, positions)


class _FastProducts(TorchFunctionMode):
    # Every call of torch costs a little more within it: too much for the steps of a decoder.
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Any = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return (fast_linear if func is linear else func)(*args, **(kwargs or {}))
