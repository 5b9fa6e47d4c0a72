"""Encoder and bridges against the equations, sentence by sentence."""

from __future__ import annotations

import itertools

import numpy as np
import paper_equations as paper
import pytest
import torch

from attnlab.batch import EOS, PAD, Padding
from attnlab.data.padding import make_batch
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.recurrence import RecurrentState

CELLS = ["rnn", "gru", "lstm"]
MERGES = ["concatenate", "sum", "mean"]
EXACT = {"rtol": 0, "atol": 1e-10}


def encoder_of(
    cell="gru", layers=1, bidirectional=True, merge="concatenate", reverse=False, **padding
):
    torch.manual_seed(4)
    sizes = {"source_vocabulary_size": 11, "padding": Padding(**padding)}
    dropouts = [0.0] * 4
    encoder = RecurrentEncoder(
        cell, 3, 4, layers, bidirectional, merge, reverse, *dropouts, **sizes
    )
    return encoder.double().eval()


def equals(found: RecurrentState, row: int, expected: paper.State) -> None:
    np.testing.assert_allclose(found.hidden[:, row].detach().numpy(), expected.hidden, **EXACT)
    assert (found.cell is None) == (expected.cell is None)
    if found.cell is not None:
        np.testing.assert_allclose(found.cell[:, row].detach().numpy(), expected.cell, **EXACT)


@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_padded_batch_equals_the_equations_on_each_sentence(layers, cell, side, pairs):
    """Outputs, final states and those of the backward direction; no state ever saw a pad."""
    sources, targets = pairs()
    batch = make_batch(sources, targets, Padding(encoder=side))
    for (bidirectional, merge), reverse in itertools.product(
        [(False, "concatenate"), *((True, m) for m in MERGES)], [False, True]
    ):
        encoder = encoder_of(cell, layers, bidirectional, merge, reverse, encoder=side)
        width = 8 if bidirectional and merge == "concatenate" else 4
        assert encoder.state_shape.size == encoder.output_size == width
        found = encoder(batch.source, batch.source_mask)
        assert found.outputs.shape == (4, 8, width)
        assert (found.backward is not None) == bidirectional
        w = paper.weights_of(encoder)
        for row, source in enumerate(sources):
            expected = paper.encode(w, cell, layers, bidirectional, merge, reverse, [*source, EOS])
            outputs = found.outputs[row][batch.source_mask[row]].detach().numpy()
            np.testing.assert_allclose(outputs, expected.outputs, **EXACT)
            equals(found.final, row, expected.final)
            if found.backward is not None:
                equals(found.backward, row, expected.backward)
        assert (found.outputs[~batch.source_mask] == 0).all()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("trained_with", ["pre", "post"])
def test_trained_encoder_skips_pads_on_the_side_that_its_training_never_had(
    trained_with, cell, pairs
):
    sources, targets = pairs()
    encoder = encoder_of(cell, encoder=trained_with)
    found = {}
    for side in ("pre", "post"):
        batch = make_batch(sources, targets, Padding(encoder=side))
        encoded = encoder(batch.source, batch.source_mask)
        found[side] = encoded.outputs[batch.source_mask], encoded.final.hidden
    torch.testing.assert_close(found["pre"], found["post"], **EXACT)


@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_read_consumes_pads_like_words(cell, reverse, side, pairs):
    encoder = encoder_of(cell, 2, reverse=reverse, encoder=side, recurrence="read")
    batch = make_batch(*pairs(), Padding(encoder=side))
    found = encoder(batch.source, batch.source_mask)
    w = paper.weights_of(encoder)
    for row in range(len(batch)):
        expected = paper.encode(
            w, cell, 2, True, "concatenate", reverse, batch.source[row].tolist()
        )
        np.testing.assert_allclose(found.outputs[row].detach().numpy(), expected.outputs, **EXACT)
        equals(found.final, row, expected.final)
        equals(found.backward, row, expected.backward)


def test_pad_embedding_is_zero_and_stays_zero(pairs):
    encoder = encoder_of(recurrence="read")
    assert (encoder.embedding.weight[PAD] == 0).all()
    batch = make_batch(*pairs(), Padding())
    encoder(batch.source, batch.source_mask).outputs.sum().backward()
    assert (encoder.embedding.weight.grad[PAD] == 0).all()


def test_output_dropout_leaves_the_final_states_alone(pairs):
    encoder, batch = encoder_of().train(), make_batch(*pairs(), Padding())
    plain = encoder(batch.source, batch.source_mask)
    encoder.output_dropout.p = 0.5
    dropped = encoder(batch.source, batch.source_mask)
    kept = dropped.outputs != 0
    assert 0 < kept.sum() < (plain.outputs != 0).sum()
    assert torch.equal(dropped.outputs, 2 * plain.outputs * kept)
    assert torch.equal(dropped.final.hidden, plain.final.hidden)


@pytest.mark.parametrize(
    ("bridge", "encoder_cell", "decoder_cell"),
    [
        *itertools.product(["linear", "mean", "first_backward", "zero"], CELLS, CELLS),
        *(("copy", cell, cell) for cell in CELLS),
        ("copy", "gru", "rnn"),
    ],
)
def test_bridge_makes_the_first_state_of_its_equation(
    bridge, encoder_cell, decoder_cell, tiny_model, pairs
):
    copies = bridge == "copy"
    choices = {"cell": encoder_cell, "decoder_cell": decoder_cell, "layers": 2, "bridge": bridge}
    choices["decoder_layers"] = 3 if bridge in ("mean", "zero") else 2
    padding = Padding(encoder="post")
    model = tiny_model(**choices, decoder_hidden_size=None if copies else 5, padding=padding)
    sources, targets = pairs()
    batch = make_batch(sources, targets, padding)
    _, state = model.encode(batch.source, batch.source_mask)
    w = paper.weights_of(model)
    for row, source in enumerate(sources):
        _, expected = paper.Model(**choices).read(w, source)
        equals(state.recurrent, row, expected)
