"""Recurrent layers: single precision where autocast would halve them, and dropout.

The CPU stands in for the GPU.
"""

from __future__ import annotations

import pytest
import torch

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.model import recurrence
from attnlab.model.decoders.cells import StackedCell
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.recurrence import CELLS, RecurrentState, in_single_precision


@pytest.fixture
def halved_on_cpu(monkeypatch):
    monkeypatch.setattr(recurrence, "HALVES_RECURRENCES", ("cpu",))


def seen(x, *more):
    return torch.is_autocast_enabled("cpu"), [
        None if tensor is None else tensor.dtype for tensor in (x, *more)
    ]


INPUTS = torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2), torch.ones(2, dtype=torch.long), None


@pytest.mark.processor
@pytest.mark.usefixtures("halved_on_cpu")
def test_recurrence_under_autocast_gets_float32_inputs_and_no_autocast():
    with torch.autocast("cpu", torch.bfloat16):
        assert in_single_precision(seen, *INPUTS) == (
            False,
            [torch.float32, torch.float32, torch.long, None],
        )
        assert torch.is_autocast_enabled("cpu")


@pytest.mark.processor
@pytest.mark.usefixtures("halved_on_cpu")
def test_recurrence_without_autocast_gets_its_inputs_unchanged():
    assert in_single_precision(seen, *INPUTS) == (
        False,
        [torch.bfloat16, torch.float32, torch.long, None],
    )


@pytest.mark.processor
def test_recurrence_on_the_cpu_stays_under_autocast():
    assert recurrence.HALVES_RECURRENCES == ("cuda",)
    with torch.autocast("cpu", torch.bfloat16):
        assert in_single_precision(seen, *INPUTS) == (
            True,
            [torch.bfloat16, torch.float32, torch.long, None],
        )


@pytest.mark.processor
@pytest.mark.usefixtures("halved_on_cpu")
@pytest.mark.parametrize("recurrence", ["skip", "read"])
@pytest.mark.parametrize("cell", CELLS)
def test_encoder_under_gpu_autocast_gives_the_numbers_of_float32(cell, recurrence, pairs):
    torch.manual_seed(1)
    padding = Padding(recurrence=recurrence)
    options = {"bidirectional": True, "merge": "concatenate", "reverse_source": False}
    sizes = {"embedding_size": 4, "hidden_size": 3, "layers": 2} | dict.fromkeys(
        ("word_dropout", "dropout", "layer_dropout", "output_dropout"), 0.0
    )
    encoder = RecurrentEncoder(cell, **sizes, **options, source_vocabulary_size=40, padding=padding)
    batch = make_batch(*pairs(), padding)
    expected = encoder(batch.source, batch.source_mask)
    with torch.autocast("cpu", torch.bfloat16):
        found = encoder(batch.source, batch.source_mask)
    assert found.outputs.dtype == torch.float32
    assert torch.equal(found.outputs, expected.outputs)
    assert torch.equal(found.final.hidden, expected.final.hidden)


@pytest.mark.processor
@pytest.mark.usefixtures("halved_on_cpu")
@pytest.mark.parametrize("cell", CELLS)
def test_all_steps_of_a_stack_under_gpu_autocast_give_the_numbers_of_float32(cell):
    torch.manual_seed(1)
    stack = StackedCell(cell, 4, 3, layers=2, dropout=0.0)
    # A bridge under autocast leaves bfloat16
    x, hidden = torch.randn(2, 5, 4), torch.randn(2, 2, 3).bfloat16()
    wide = hidden.float()
    expected = stack.all_steps(x, RecurrentState(wide, wide if cell == "lstm" else None))
    with torch.autocast("cpu", torch.bfloat16):
        found = stack.all_steps(x, RecurrentState(hidden, hidden if cell == "lstm" else None))
    assert torch.equal(found, expected)


@pytest.mark.processor
@pytest.mark.usefixtures("halved_on_cpu")
@pytest.mark.parametrize(
    "choices", [{}, {"decoder": "no_attention"}, {"decoder": "step_then_attend"}]
)
@pytest.mark.parametrize("cell", CELLS)
def test_model_under_gpu_autocast_trains_with_finite_gradients(cell, choices, tiny_model, pairs):
    model = tiny_model(cell=cell, **choices).float()
    batch = make_batch(*pairs(), model.padding)
    expected = model(batch).reading.readout
    with torch.autocast("cpu", torch.bfloat16):
        found = model(batch).reading.readout
    found.float().sum().backward()
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


B, T, INPUT, HIDDEN, LAYERS = 2, 3, 4, 5, 3


@pytest.fixture(params=["rnn", "gru", "lstm"])
def stack(request: pytest.FixtureRequest) -> StackedCell:
    torch.manual_seed(1)
    return StackedCell(request.param, INPUT, HIDDEN, LAYERS, dropout=1.0)


def begin(stack: StackedCell) -> RecurrentState:
    hidden = torch.randn(LAYERS, B, HIDDEN)
    return RecurrentState(
        hidden, torch.randn(LAYERS, B, HIDDEN) if stack.state_shape.has_cell else None
    )


def test_stacked_cell_step_drops_between_layers_only(stack: StackedCell) -> None:
    before, xs = begin(stack), torch.randn(2, B, INPUT)
    one, other = (stack(stack.product(x), before).hidden for x in xs)
    assert (one[0] != other[0]).all()
    assert torch.equal(one[1:], other[1:])
    stack.eval()
    one, other = (stack(stack.product(x), before).hidden for x in xs)
    assert (one[1:] != other[1:]).any(dim=-1).all()


@pytest.mark.parametrize("layers", [1, 2, LAYERS])
def test_stacked_cell_all_steps_drop_between_layers_only(stack: StackedCell, layers: int) -> None:
    stack.cells = stack.cells[:layers]
    before, xs = begin(stack), torch.randn(2, B, T, INPUT)
    one, other = (stack.all_steps(x, before) for x in xs)
    assert torch.equal(one, other) == (layers > 1)
