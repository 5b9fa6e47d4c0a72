"""Linear maps inside a loop over time: the same numbers, with the weights' gradients in one product after the loop.

In a loop of T steps every weight would get T gradients, each a product of thin matrices that is then added to a sum as
large as the weight. They are collected instead: dW = sum_t g_t^T x_t = [g_1; ...; g_T]^T [x_1; ...; x_T].
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from attnlab.model.product import product

_LOOP: ContextVar[dict[Tensor, tuple[_Collected, Tensor]] | None] = ContextVar("loop", default=None)


@contextmanager
def gradients_after_the_loop() -> Iterator[None]:
    """Within it, `repeated_linear` collects the gradients of its weights; without gradients it changes nothing.

    One for each pass over a batch: what is collected goes with the pass's graph. Under autocast the weights are cast
    once, when they are first met. Gradients of gradients are not to be had through it.
    """
    token = _LOOP.set({} if torch.is_grad_enabled() else None)
    try:
        yield
    finally:
        _LOOP.reset(token)


def repeated_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, as torch's `linear`: x (..., I), weight (O, I), bias (O,) -> (..., O)."""
    loop = _LOOP.get()
    if loop is None or not weight.requires_grad:
        return linear(x, weight, bias)
    if weight not in loop:
        collected = _Collected(weight, bias)
        with torch.enable_grad():  # the first use may be one that asks for no gradient
            loop[weight] = collected, _Ticket.apply(weight, bias, collected)
    collected, ticket = loop[weight]
    return _Use.apply(x, ticket, collected)


class RepeatedLinear(nn.Linear):
    """torch's linear layer, for use at every step of a loop."""

    def forward(self, x: Tensor) -> Tensor:
        return repeated_linear(x, self.weight, self.bias)


class _Collected:
    """A weight as the loop uses it, and the inputs and output gradients of its uses.

    The graph holds it, so it must hold nothing of the graph: in a circle both would live on until Python looks for
    circles, and with them a cast copy of the weight for every batch.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        kind = weight.device.type
        cast = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if cast else weight.dtype
        self.weight = weight.detach().to(dtype)
        self.bias = None if bias is None else bias.detach().to(dtype)
        self.inputs: list[Tensor] = []
        self.gradients: list[Tensor] = []


class _Ticket(torch.autograd.Function):
    """An empty number that every use of a weight takes: by it autograd knows that the gradients are complete when the
    last use has had its turn."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, collected: _Collected) -> Tensor:
        ctx.collected, ctx.dtype = collected, weight.dtype
        return weight.new_zeros(())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        uses: _Collected = ctx.collected
        gradients, inputs = torch.cat(uses.gradients), torch.cat(uses.inputs)
        uses.gradients.clear()
        uses.inputs.clear()
        bias = gradients.sum(0).to(ctx.dtype) if ctx.needs_input_grad[1] else None
        return product(gradients.t(), inputs.t()).to(ctx.dtype), bias, None


class _Use(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ticket: Tensor, collected: _Collected) -> Tensor:
        ctx.collected, ctx.dtype = collected, x.dtype
        x = x.to(collected.weight.dtype)
        ctx.save_for_backward(x)
        return product(x.flatten(0, -2), collected.weight, collected.bias).unflatten(0, x.shape[:-1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        (x,) = ctx.saved_tensors
        uses: _Collected = ctx.collected
        rows = gradient.flatten(0, -2)
        # A backward pass that asks for other gradients than the weights' leaves nothing here for the next one.
        ticket = ctx.next_functions[1][0]
        if torch._C._will_engine_execute_node(ticket):
            uses.inputs.append(x.flatten(0, -2))
            uses.gradients.append(rows)
        into_x = product(rows, uses.weight.t()).view(x.shape).to(ctx.dtype) if ctx.needs_input_grad[0] else None
        return into_x, gradient.new_zeros(()), None
