"""Packed weights: laid out once in oneDNN's own order, for all steps of a search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from attnlab.errors import ExperimentError
from attnlab.model.fast import products
from attnlab.model.fast.mode import LinearMode

Packed = dict[tuple[nn.Parameter, torch.dtype], tuple[Tensor, Tensor | None]]

_SHARED: ContextVar[Packed | None] = ContextVar("shared", default=None)


@contextmanager
def weights_packed_once() -> Iterator[None]:
    """Within it, all searches share the packed weights; no weight may change before its end."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


class PackedWeights(LinearMode):
    """Within it, linear layers use their weights in oneDNN's own layout.

    They are cast and reordered at the first use: a plain product of a few rows spends much of its
    time on the layout of the weight, at every step again. The sums are the same but for the order
    of their terms. A search enters it again at each step; no weight may change in the meantime, and
    nothing has a gradient. On other devices, for other types and without oneDNN it changes nothing.

    int8: round weights and inputs to 8-bit integers first, which changes the numbers a little. The
        weights of each output and each row of the input have their own scale, so a row's result
        does not depend on the other rows.
    """

    def __init__(self, int8: bool = False) -> None:
        super().__init__()
        self._int8 = int8
        shared = _SHARED.get()
        self._packed: Packed = {} if shared is None else shared

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        dtype = (
            torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype
        )
        if self._int8 and (x.device.type != "cpu" or not products.has_onednn()):
            raise ExperimentError(
                "search.int8 must be false here: it takes a CPU and a torch with oneDNN"
            )
        if (
            not isinstance(weight, nn.Parameter)
            or x.device.type != "cpu"
            or not products.has_onednn(dtype)
        ):
            return linear(x, weight, bias)
        key = weight, torch.int8 if self._int8 else dtype
        if key not in self._packed:
            self._packed[key] = _laid_out(weight.detach(), key[1])
        packed, scales = self._packed[key]
        if scales is not None:
            return _product_of_integers(x, packed, scales, bias).to(dtype)
        bias = None if bias is None else bias.to(dtype)
        return torch.ops.mkldnn._linear_pointwise(x.to(dtype), packed, bias, "none", [], "")


def _laid_out(weight: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """The weight (O, I) in oneDNN's own layout; for int8, also the scale of each output (O,)."""
    if dtype is not torch.int8:
        return torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype), None), None
    scales = weight.float().abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127
    return torch.ops.onednn.qlinear_prepack(
        (weight / scales.unsqueeze(1)).round().to(dtype), None
    ), scales


def _product_of_integers(x: Tensor, packed: Tensor, scales: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b, with x (..., I) rounded to -63 ... 63.

    Older processors add pairs of products in 16 bits.
    """
    rows = x.flatten(0, -2).float()
    row_scales = rows.abs().amax(1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny) / 63
    whole = (rows / row_scales).round_().add_(64).to(torch.uint8)
    zeros = torch.zeros(len(scales), dtype=torch.int32)
    sums = torch.ops.onednn.qlinear_pointwise(
        whole, 1.0, 64, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    found: Tensor = (
        sums * row_scales if bias is None else torch.addcmul(bias.float(), sums, row_scales)
    )
    return found.unflatten(0, x.shape[:-1])
