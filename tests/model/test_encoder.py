"""Encoder and bridges against the equations, sentence by sentence."""

from __future__ import annotations

import itertools

import numpy as np
import paper_equations as paper
import pytest
import torch

from attnlab.batch import EOS, PAD, Padding
from attnlab.data.padding import make_batch
from attnlab.model.encoder import Encoder
from attnlab.model.recurrent_state import RecurrentState
from attnlab.model.shift import inverse, pads_last, reorder

CELLS = ["rnn", "gru", "lstm"]


def encoder_of(cell, layers=1, bidirectional=False, padding=None) -> Encoder:
    torch.manual_seed(4)
    encoder = Encoder(cell, 3, 4, layers, bidirectional, 0.0, source_vocabulary_size=11, padding=padding or Padding())
    return encoder.double().eval()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("side", ["pre", "post"])
def test_a_padded_batch_equals_the_equations_on_each_sentence(cell, layers, bidirectional, side, pairs):
    padding = Padding(encoder=side)
    encoder = encoder_of(cell, layers, bidirectional, padding)
    sources, targets = pairs()
    batch = make_batch(sources, targets, padding)
    outputs, final = encoder(batch.source, batch.source_mask)
    assert outputs.shape == (4, 8, encoder.output_size)
    assert final.hidden.shape == (layers, 4, encoder.output_size)
    assert encoder.state_shape.size == encoder.output_size == (8 if bidirectional else 4)
    assert (final.cell is not None) == (cell == "lstm") == encoder.state_shape.has_cell
    w = paper.weights_of(encoder)
    for row, source in enumerate(sources):
        expected, end = paper.encode(w, cell, layers, bidirectional, [*source, EOS])
        found = outputs[row][batch.source_mask[row]].detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(final.hidden[:, row].detach().numpy(), end.hidden, rtol=0, atol=1e-10)
        if cell == "lstm":
            np.testing.assert_allclose(final.cell[:, row].detach().numpy(), end.cell, rtol=0, atol=1e-10)
    assert (outputs[~batch.source_mask] == 0).all()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("side", ["pre", "post"])
def test_read_consumes_pads_like_words(cell, side, pairs):
    padding = Padding(encoder=side, recurrence="read")
    encoder = encoder_of(cell, 1, True, padding)
    sources, targets = pairs()
    batch = make_batch(sources, targets, padding)
    outputs, final = encoder(batch.source, batch.source_mask)
    w = paper.weights_of(encoder)
    for row in range(len(sources)):
        expected, end = paper.encode(w, cell, 1, True, batch.source[row].tolist())
        np.testing.assert_allclose(outputs[row].detach().numpy(), expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(final.hidden[:, row].detach().numpy(), end.hidden, rtol=0, atol=1e-10)


def test_skipped_pads_could_be_anything(pairs):
    """Not even the embedding of a pad enters: other ids in the places of pads change nothing."""
    encoder = encoder_of("lstm", 2, True)
    batch = make_batch(*pairs(), Padding())
    other = torch.where(batch.source_mask, batch.source, 7)
    one, final = encoder(batch.source, batch.source_mask)
    two, other_final = encoder(other, batch.source_mask)
    assert torch.equal(one, two)
    assert torch.equal(final.hidden, other_final.hidden)
    assert torch.equal(final.cell, other_final.cell)


def test_the_embedding_of_a_pad_is_zero_and_stays_so(pairs):
    encoder = encoder_of("gru", padding=Padding(recurrence="read"))
    assert (encoder.embedding.weight[PAD] == 0).all()
    batch = make_batch(*pairs(), Padding())
    encoder(batch.source, batch.source_mask)[0].sum().backward()
    assert (encoder.embedding.weight.grad[PAD] == 0).all()


@pytest.mark.parametrize(("encoder_cell", "decoder_cell"), itertools.product(CELLS, CELLS))
def test_the_linear_bridge(encoder_cell, decoder_cell, tiny_model, pairs):
    model = tiny_model(cell=encoder_cell, decoder_cell=decoder_cell, layers=2, decoder_hidden_size=5)
    batch = make_batch(*pairs(), Padding())
    _, final = model.encoder(batch.source, batch.source_mask)
    first = model.bridge(final)
    assert (first.cell is not None) == (decoder_cell == "lstm")
    w = paper.weights_of(model.bridge)
    for row in range(len(batch)):
        ends = paper.State(
            list(final.hidden[:, row].detach().numpy()),
            None if final.cell is None else list(final.cell[:, row].detach().numpy()),
        )
        expected = paper.linear_bridge(w, ends)
        np.testing.assert_allclose(first.hidden[:, row].detach().numpy(), expected.hidden, rtol=0, atol=1e-10)
        if decoder_cell == "lstm":
            np.testing.assert_allclose(first.cell[:, row].detach().numpy(), expected.cell, rtol=0, atol=1e-10)


def test_the_copy_bridge_copies_hidden_and_cell_each_to_its_own(tiny_model, pairs):
    model = tiny_model(cell="lstm", layers=2, bridge="copy")
    batch = make_batch(*pairs(), Padding())
    _, final = model.encoder(batch.source, batch.source_mask)
    _, first = model.encode(batch.source, batch.source_mask)
    assert torch.equal(first.hidden, final.hidden)
    assert torch.equal(first.cell, final.cell)
    assert not torch.equal(first.cell, first.hidden)


@pytest.mark.parametrize("cell", CELLS)
def test_the_zero_bridge(cell, tiny_model, pairs):
    model = tiny_model(cell=cell, layers=2, bridge="zero", decoder_hidden_size=5, decoder_layers=3)
    batch = make_batch(*pairs(), Padding())
    _, first = model.encode(batch.source, batch.source_mask)
    assert first.hidden.shape == (3, 4, 5)
    assert not first.hidden.any()
    assert (first.cell is not None) == (cell == "lstm")


def test_shifting_pads_and_back():
    mask = torch.tensor([[False, False, True, True], [True, True, True, False], [True, False, True, False]])
    x = torch.arange(12).view(3, 4)
    order = pads_last(mask)
    assert reorder(x, order).tolist() == [[2, 3, 0, 1], [4, 5, 6, 7], [8, 10, 9, 11]]
    assert torch.equal(reorder(reorder(x, order), inverse(order)), x)
    wide = x.unsqueeze(2).expand(3, 4, 2).unsqueeze(3)
    assert torch.equal(reorder(wide, order)[..., 1, 0], reorder(x, order))


def test_selecting_rows_of_a_state():
    hidden, cell = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    rows = torch.tensor([2, 2, 0])
    found = RecurrentState(hidden, cell).select(rows)
    assert torch.equal(found.hidden, torch.stack([hidden[:, 2], hidden[:, 2], hidden[:, 0]], 1))
    assert torch.equal(found.cell[:, 1], cell[:, 2])
    assert RecurrentState(hidden).select(rows).cell is None
