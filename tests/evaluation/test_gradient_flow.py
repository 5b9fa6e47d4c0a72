"""The encoder run token by token equals the encoder, and its gradients are right.

They are compared with finite differences and with Pascanu's product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.batch import Batch, Padding
from attnlab.data.padding import make_batch
from attnlab.evaluation.gradient_flow import (
    distances,
    encode_by_token,
    gradient_flow,
    sentence_losses,
    state_gradients,
    state_size,
)
from attnlab.model.fast.encoder import FastEncoder

Build = Callable[..., Any]
CELLS = ["rnn", "gru", "lstm"]
DECODERS = ["no_attention", "attend_then_step", "step_then_attend"]


@pytest.fixture
def one_way(tiny_model: Build) -> Build:
    """Builds a model whose encoder has one direction."""

    def build(cell: str = "lstm", **choices: Any) -> Any:
        return tiny_model(cell=cell, bidirectional=False, scale=2.0, **choices)

    return build


@pytest.fixture
def batch_of(pairs: Build) -> Build:
    def build(padding: Padding, **lengths: Any) -> Batch:
        return make_batch(*pairs(**lengths), padding)

    return build


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("reverse_source", [False, True])
@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize("recurrence", ["skip", "read"])
def test_encode_by_token_equals_the_encoder(
    one_way: Build,
    batch_of: Build,
    cell: str,
    layers: int,
    reverse_source: bool,
    side: Any,
    recurrence: Any,
) -> None:
    padding = Padding(encoder=side, recurrence=recurrence)
    encoder = one_way(cell, layers=layers, padding=padding).encoder
    encoder.reverse_source = reverse_source
    batch = batch_of(padding)
    expected = encoder(batch.source, batch.source_mask)
    found = encode_by_token(encoder, batch.source, batch.source_mask)
    close = {"rtol": 0, "atol": 1e-10}
    torch.testing.assert_close(found.outputs, expected.outputs, **close)
    torch.testing.assert_close(found.final.hidden, expected.final.hidden, **close)
    torch.testing.assert_close(found.final.cell, expected.final.cell, **close)
    assert found.backward is None


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("layers", [1, 2])
def test_state_gradients_equal_finite_differences(
    one_way: Build, batch_of: Build, cell: str, decoder: str, layers: int
) -> None:
    model = one_way(cell, decoder=decoder, layers=layers)
    batch = batch_of(model.padding)
    gradients = state_gradients(model, batch)
    assert gradients.shape == (*batch.source.shape, state_size(model.encoder))
    nudges = torch.zeros_like(gradients)
    width = 1e-5
    with torch.no_grad():
        for s in range(nudges.shape[1]):
            for n in range(nudges.shape[2]):
                nudges[:, s, n] = width
                above = sentence_losses(model, batch, nudges)
                nudges[:, s, n] = -width
                below = sentence_losses(model, batch, nudges)
                nudges[:, s, n] = 0
                torch.testing.assert_close(
                    gradients[:, s, n], (above - below) / (2 * width), rtol=1e-5, atol=1e-9
                )
    assert (gradients.norm(dim=2)[batch.source_mask] > 0).all()
    assert (gradients[~batch.source_mask] == 0).all()


def test_state_gradients_without_attention_are_products_of_jacobians(
    one_way: Build, batch_of: Build
) -> None:
    """Pascanu et al. 2013, equation 5, for h_s = tanh(W x_s + U h_{s-1} + b).

    dh_{s+1}/dh_s = diag(1 - h_{s+1}²) U.
    """
    model = one_way("rnn", decoder="no_attention")
    batch = batch_of(model.padding, source_lengths=(9,), target_lengths=(4,))
    gradients = state_gradients(model, batch)[0].numpy()  # (S, H)
    states = model.encoder(batch.source, batch.source_mask).outputs[0].detach().numpy()  # (S, H)
    recurrent = model.encoder.forward_layers[0].weight_hh_l0.detach().numpy()
    expected = gradients[-1]
    for s in reversed(range(len(states) - 1)):
        expected = expected @ (np.diag(1 - states[s + 1] ** 2) @ recurrent)
        np.testing.assert_allclose(gradients[s], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("encoder_side", ["pre", "post"])
@pytest.mark.parametrize("decoder_side", ["pre", "post"])
def test_state_gradients_of_a_sentence_ignore_batch_and_padding(
    one_way: Build, pairs: Build, decoder: str, encoder_side: Any, decoder_side: Any
) -> None:
    padding = Padding(encoder=encoder_side, decoder=decoder_side)
    model = one_way(decoder=decoder, padding=padding)
    sources, targets = pairs()
    together = make_batch(sources, targets, padding)
    gradients = state_gradients(model, together)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = state_gradients(model, make_batch([source], [target], padding))[0]
        torch.testing.assert_close(
            gradients[row][together.source_mask[row]], alone, rtol=0, atol=1e-10
        )


def test_distances_count_real_tokens_to_the_final_state() -> None:
    mask = torch.tensor([[False, True, True, True], [True, True, False, False]])
    assert distances(mask, reverse_source=False)[mask].tolist() == [2, 1, 0, 1, 0]
    assert distances(mask, reverse_source=True)[mask].tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_gradient_flow_norms_are_means_by_distance(one_way: Build, pairs: Build, cell: str) -> None:
    model = one_way(cell)
    sources, targets = pairs(source_lengths=(2, 4, 2), target_lengths=(3, 2, 1))
    batches = [
        make_batch(sources[:2], targets[:2], model.padding),
        make_batch(sources[2:], targets[2:], model.padding),
    ]
    flow = gradient_flow(model, batches)
    assert isinstance(model.encoder, FastEncoder)  # it speeds its model up
    norms: list[list[float]] = [[] for _ in range(5)]
    for source, target in zip(sources, targets, strict=True):
        gradients = state_gradients(model, make_batch([source], [target], model.padding))[0].numpy()
        for s, gradient in enumerate(gradients):
            norms[len(gradients) - 1 - s].append(float(np.sqrt((gradient**2).sum())))
    assert [len(values) for values in norms] == [3, 3, 3, 1, 1]
    np.testing.assert_allclose(flow, [np.mean(values) for values in norms], rtol=1e-9)


def test_gradient_flow_leaves_the_model_unchanged(one_way: Build, batch_of: Build) -> None:
    model = one_way()
    batch = batch_of(model.padding)
    before = model(batch).reading.readout
    state_gradients(model, batch)
    torch.testing.assert_close(model(batch).reading.readout, before, rtol=0, atol=0)
    assert not model.encoder._forward_hooks
    assert all(parameter.grad is None for parameter in model.parameters())
