"""The memory's rows, and what it keeps of the pads."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch
from small_attentions import MASK, PARTS, POSITIONS, B, D, H, S, inputs

from attnlab.config.part import Part
from attnlab.model.attention.attention import MultiHeadAttention, remember
from attnlab.model.attention.mechanism import LinearProjection, Mechanism, mechanism_of
from attnlab.model.attention.memory import Memory
from attnlab.model.encoder import Encoded
from attnlab.model.normalisers import Softmax
from attnlab.model.recurrence import RecurrentState
from attnlab.model.scopes import GlobalScope


@pytest.fixture
def memory() -> Memory:
    torch.manual_seed(1)
    return Memory(torch.randn(B, D), torch.randn(B, S, 3), torch.randn(B, S, D), MASK, POSITIONS, torch.tensor([5, 3]))


def test_memory_select_takes_rows_of_every_field(memory: Memory) -> None:
    selected = memory.select(torch.tensor([1, 1, 0]))
    for field in fields(Memory):
        if field.name == "intervention":  # the same for every row
            continue
        rows = getattr(memory, field.name)
        assert torch.equal(getattr(selected, field.name), torch.stack([rows[1], rows[1], rows[0]])), field.name


def test_memory_select_without_keys_values_and_mask_keeps_them_none(memory: Memory) -> None:
    bare = replace(memory, keys=None, values=None, mask=None).select(torch.tensor([1]))
    assert (bare.keys, bare.values, bare.mask) == (None, None, None)


def test_memory_for_rows_puts_copies_side_by_side(memory: Memory) -> None:
    assert memory.for_rows(B) is memory
    assert memory.for_rows(3 * B).lengths.tolist() == [5, 5, 5, 3, 3, 3]


@pytest.mark.parametrize("masked", [True, False])
def test_remember_unmasked_pads_have_positions_after_the_sentence(masked: bool) -> None:
    attention = Mechanism(PARTS["location"], Softmax(), Part(GlobalScope)).build(H, D)
    encoded = Encoded(inputs("location").outputs, RecurrentState(torch.zeros(1, B, D), None), None)
    memory = remember(encoded, MASK, masked, attention)
    assert (memory.mask is MASK) == masked
    # The second sentence has two pads in front of three tokens.
    assert memory.keys[1].tolist() == ([0, 0, 0, 1, 2] if masked else [3, 4, 0, 1, 2])
    assert memory.positions[1].tolist() == [3, 4, 0, 1, 2]


def test_mechanism_of_passes_every_choice_on() -> None:
    projection, heads = Part(LinearProjection, size=3), Part(MultiHeadAttention, heads=2, size=4)
    scope = Part(GlobalScope)
    found = mechanism_of(PARTS["dot"], projection, Softmax(), scope, None, heads)
    assert (found.score, found.projection, found.scope, found.heads) == (PARTS["dot"], projection, scope, heads)
    assert isinstance(found.build(H, D), MultiHeadAttention)
