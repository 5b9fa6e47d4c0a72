"""Linear layers whose weights get their gradients after the pass, in one product each.

In a loop of T steps every weight would get T gradients, each a product of thin matrices that is
then added to a sum as large as the weight. They are collected instead: dW = sum_t g_t^T x_t = [g_1;
...; g_T]^T [x_1; ...; x_T].
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from attnlab.model.fast.products import product

_PASS: ContextVar[dict[Tensor, tuple[_Collected, Tensor]] | None] = ContextVar("pass", default=None)


@contextmanager
def gradients_after_the_pass() -> Iterator[None]:
    """Within it, `fast_linear` collects the gradients of its weights.

    Where nothing has a gradient, it changes nothing.

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
    # A layer with a single input, as that of coverage, multiplies no rows of a matrix: its output's
    # gradients, (B, S, A) at every step, would only fill the memory until the end of the pass.
    if used is None or not weight.requires_grad or weight.shape[1] == 1:
        return linear(x, weight, bias)
    if weight not in used:
        collected = _Collected(weight, bias)
        with torch.enable_grad():  # the first use may be one that asks for no gradient
            used[weight] = collected, _Ticket.apply(weight, bias, collected)
    collected, ticket = used[weight]
    return _Use.apply(x, ticket, collected)


class FastLinear(nn.Linear):
    """torch's linear layer, cheaper within `gradients_after_the_pass`.

    Both its product and its gradients cost less.
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
    """An empty number that every use of a weight takes.

    Autograd so runs its backward pass after that of the last use: the gradients are complete then.
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
