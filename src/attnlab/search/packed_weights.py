"""Weights laid out for the processor once, for the many thin products of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from attnlab.model.product import has_onednn

Packed = dict[tuple[nn.Parameter, torch.dtype], Tensor]

_SHARED: ContextVar[Packed | None] = ContextVar("shared", default=None)


@contextmanager
def weights_packed_once() -> Iterator[None]:
    """All searches within it share what they have packed; no weight may change before its end."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


class PackedWeights(TorchFunctionMode):
    """Within it, linear layers use their weights in oneDNN's own layout, cast and reordered when first met.

    A plain product of a few rows spends much of its time on the layout of the weight, at every step again. The sums
    are the same but for the order of their terms. It is entered again for each step of one search: no weight may
    change in the meantime, and nothing has a gradient. On other devices, for other types and where torch comes without
    oneDNN it changes nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        shared = _SHARED.get()
        self._packed: Packed = {} if shared is None else shared

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return (self._linear if func is linear else func)(*args, **(kwargs or {}))

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype
        if not isinstance(weight, nn.Parameter) or x.device.type != "cpu" or not _packs(dtype):
            return linear(x, weight, bias)
        if (weight, dtype) not in self._packed:
            self._packed[weight, dtype] = torch.ops.mkldnn._reorder_linear_weight(weight.detach().to(dtype), None)
        packed, bias = self._packed[weight, dtype], None if bias is None else bias.to(dtype)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(dtype), packed, bias, "none", [], "")
        return product


def _packs(dtype: torch.dtype) -> bool:
    """Whether torch can lay out weights of this type."""
    if not has_onednn():
        return False
    return dtype is torch.float32 or (dtype is torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
