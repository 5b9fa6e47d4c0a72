"""Dropout stands between the layers, and nowhere else: with all of it dropped the layers above see no input at all."""

from __future__ import annotations

import pytest
import torch

from attnlab.model.decoder.cells import StackedCell
from attnlab.model.recurrence import RecurrentState

B, T, INPUT, HIDDEN, LAYERS = 2, 3, 4, 5, 3


@pytest.fixture(params=["rnn", "gru", "lstm"])
def stack(request: pytest.FixtureRequest) -> StackedCell:
    torch.manual_seed(1)
    return StackedCell(request.param, INPUT, HIDDEN, LAYERS, dropout=1.0)


def begin(stack: StackedCell) -> RecurrentState:
    hidden = torch.randn(LAYERS, B, HIDDEN)
    return RecurrentState(hidden, torch.randn(LAYERS, B, HIDDEN) if stack.state_shape.has_cell else None)


def test_a_step_drops_what_goes_from_layer_to_layer(stack: StackedCell) -> None:
    before, xs = begin(stack), torch.randn(2, B, INPUT)
    one, other = (stack(x, before).hidden for x in xs)
    assert (one[0] != other[0]).all()
    assert torch.equal(one[1:], other[1:])
    stack.eval()
    one, other = (stack(x, before).hidden for x in xs)
    assert (one[1:] != other[1:]).any(dim=-1).all()


@pytest.mark.parametrize("layers", [1, 2, LAYERS])
def test_all_steps_at_once_drop_the_same(stack: StackedCell, layers: int) -> None:
    stack.cells = stack.cells[:layers]
    before, xs = begin(stack), torch.randn(2, B, T, INPUT)
    one, other = (stack.all_steps(x, before) for x in xs)
    assert torch.equal(one, other) == (layers > 1)
