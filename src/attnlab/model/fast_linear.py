"""Fast linear layers: oneDNN's products, weight gradients after a training pass, weights packed
once for a search.

In a loop of T steps every weight would get T gradients, each a product of thin matrices that is
then added to a sum as large as the weight. They are collected instead: dW = sum_t g_t^T x_t = [g_1;
...; g_T]^T [x_1; ...; x_T].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from attnlab.errors import ExperimentError

Packed = dict[tuple[nn.Parameter, torch.dtype], tuple[Tensor, Tensor | None]]

_PASS: ContextVar[dict[Tensor, tuple[_Collected, Tensor]] | None] = ContextVar("pass", default=None)
_SHARED: ContextVar[Packed | None] = ContextVar("shared", default=None)


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b as torch's `linear`, without a gradient: x (M, I), weight (O, I), bias (O,) -> (M,
    O).

    In single precision on a CPU by oneDNN, which torch itself asks in bfloat16 only: its own
    choice, MKL, keeps to a slower path on processors that are not Intel's. The sums are the same
    but for the order of their terms.
    """
    if x.device.type == "cpu" and x.dtype == torch.float32 and has_onednn() and x.numel() > 0:
        if not (weight.is_contiguous() or weight.t().is_contiguous()):
            # With a slice of columns oneDNN takes a thousand times as long
            weight = weight.contiguous()
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return linear(x, weight, bias)


def has_onednn(dtype: torch.dtype = torch.float32) -> bool:
    """Whether torch comes with oneDNN, the operators by which its compiler reaches it, and support
    for the type.
    """
    if not (
        torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    ):
        return False
    return dtype is torch.float32 or (
        dtype is torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )


@contextmanager
def gradients_after_the_pass() -> Iterator[None]:
    """Within it, `fast_linear` collects the gradients of its weights; without gradients it changes
    nothing.

    Enter it once for each pass over a batch: what it collects belongs to the pass's graph. Under
    autocast each weight is cast once, at its first use. It does not support gradients of gradients.
    """
    token = _PASS.set({} if torch.is_grad_enabled() else None)
    try:
        yield
    finally:
        _PASS.reset(token)


def fast_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, as torch's `linear`: x (..., I), weight (O, I), bias (O,) -> (..., O)."""
    used = _PASS.get()
    if used is None or not weight.requires_grad:
        return linear(x, weight, bias)
    if weight not in used:
        collected = _Collected(weight, bias)
        with torch.enable_grad():  # the first use may be one that asks for no gradient
            used[weight] = collected, _Ticket.apply(weight, bias, collected)
    collected, ticket = used[weight]
    return _Use.apply(x, ticket, collected)


class FastLinear(nn.Linear):
    """torch's linear layer, with the same numbers: in the pass of a Seq2Seq its product and its
    gradients cost less.
    """

    def forward(self, x: Tensor) -> Tensor:
        return fast_linear(x, self.weight, self.bias)


class _Collected:
    """A weight as the pass uses it, and the inputs and output gradients of its uses.

    The graph refers to it, so it must not refer to the graph: a cycle would keep both in memory
    until the garbage collector runs, and with them a cast copy of the weight for every batch.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        kind = weight.device.type
        cast = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if cast else weight.dtype
        # Or `product` would copy it at each step
        self.weight = weight.detach().to(dtype).contiguous()
        self.bias = None if bias is None else bias.detach().to(dtype)
        self.inputs: list[Tensor] = []
        self.gradients: list[Tensor] = []


class _Ticket(torch.autograd.Function):
    """An empty number that every use of a weight takes, so that autograd runs its backward pass
    after that of the last
    use: the gradients are complete then.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, collected: _Collected) -> Tensor:
        ctx.collected, ctx.dtype = collected, weight.dtype
        return weight.new_zeros(())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        uses: _Collected = ctx.collected
        gradients, inputs = (
            each[0] if len(each) == 1 else torch.cat(each) for each in (uses.gradients, uses.inputs)
        )
        uses.gradients.clear()
        uses.inputs.clear()
        bias = gradients.sum(0).to(ctx.dtype) if ctx.needs_input_grad[1] else None
        return product(gradients.t(), inputs.t()).to(ctx.dtype), bias, None


class _Use(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ticket: Tensor, collected: _Collected) -> Tensor:
        ctx.collected, ctx.dtype = collected, x.dtype
        x = x.to(collected.weight.dtype)
        ctx.save_for_backward(x, collected.weight)
        return product(x.flatten(0, -2), collected.weight, collected.bias).unflatten(
            0, x.shape[:-1]
        )

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x, weight = ctx.saved_tensors
        uses: _Collected = ctx.collected
        rows = gradient.flatten(0, -2)
        # A backward pass that asks for other gradients than the weights' leaves nothing here for
        # the next one.
        ticket = ctx.next_functions[1][0]
        if torch._C._will_engine_execute_node(ticket):
            uses.inputs.append(x.flatten(0, -2))
            uses.gradients.append(rows)
        into_x = (
            product(rows, weight.t()).view(x.shape).to(ctx.dtype)
            if ctx.needs_input_grad[0]
            else None
        )
        return into_x, gradient.new_zeros(()), None


@contextmanager
def weights_packed_once() -> Iterator[None]:
    """Within it, all searches share the packed weights; no weight may change before its end."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


class PackedWeights(TorchFunctionMode):
    """Within it, linear layers use their weights in oneDNN's own layout, cast and reordered at the
    first use.

    A plain product of a few rows spends much of its time on the layout of the weight, at every step
    again. The sums
    are the same but for the order of their terms. A search enters it again at each step; no weight
    may change in the meantime, and nothing has a gradient. On other devices, for other types and
    without oneDNN it changes nothing.

    int8: round weights and inputs to 8-bit integers first, which changes the numbers a little. The
        weights of each output and each row of the input have their own scale, so a row's result
        does not depend on the other rows.
    """

    def __init__(self, int8: bool = False) -> None:
        super().__init__()
        self._int8 = int8
        shared = _SHARED.get()
        self._packed: Packed = {} if shared is None else shared

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Any = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return (self._linear if func is linear else func)(*args, **(kwargs or {}))

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        dtype = (
            torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype
        )
        if self._int8 and (x.device.type != "cpu" or not has_onednn()):
            raise ExperimentError(
                "search.int8 must be false here: it takes a CPU and a torch with oneDNN"
            )
        if not isinstance(weight, nn.Parameter) or x.device.type != "cpu" or not has_onednn(dtype):
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
    """x W^T + b, with x (..., I) rounded to -63 ... 63: older processors add pairs of products in
    16 bits.
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
