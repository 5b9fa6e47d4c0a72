"""The Transformer's layers against torch's own, and against the equations of their positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attnlab.batch import PAD, Padding
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.encoders.self_attention import SelfAttentionEncoder
from attnlab.model.transformer.positions import (
    RotaryPositions,
    Sinusoids,
)

EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-10}
SETTINGS: dict[str, Any] = {
    "embedding_size": 8,
    "blocks": 2,
    "self_attention_heads": 2,
    "feed_forward_size": 12,
    "positions": "sinusoidal",
    "longest": None,
    "norm": "before",
    "word_dropout": 0.0,
    "dropout": 0.0,
    "block_dropout": 0.0,
}


def encoder_of(padding: Padding = Padding(), **settings: Any) -> SelfAttentionEncoder:  # noqa: B008 (frozen)
    torch.manual_seed(3)
    encoder = SelfAttentionEncoder(
        **{**SETTINGS, **settings}, source_vocabulary_size=40, padding=padding
    )
    return encoder.double().eval()


def torchs_own(encoder: SelfAttentionEncoder, norm: str) -> nn.TransformerEncoder:
    """torch's encoder with the same weights, its further biases zero."""
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm == "before", dtype=torch.float64
    )
    last = nn.LayerNorm(8, dtype=torch.float64) if norm == "before" else None
    theirs = nn.TransformerEncoder(layer, 2, last, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for their, our in zip(theirs.layers, encoder.blocks, strict=True):
            their.self_attn.in_proj_weight.copy_(our.attention.W_QKV.weight)
            their.self_attn.in_proj_bias.zero_()
            their.self_attn.out_proj.weight.copy_(our.attention.W_O.weight)
            their.self_attn.out_proj.bias.zero_()
            their.linear1.load_state_dict(our.feed_forward[0].state_dict())
            their.linear2.load_state_dict(our.feed_forward[2].state_dict())
            their.norm1.load_state_dict(our.around_attention.norm.state_dict())
            their.norm2.load_state_dict(our.around_feed_forward.norm.state_dict())
        if last is not None:
            last.load_state_dict(encoder.norm.state_dict())
    return theirs


@pytest.mark.parametrize("norm", ["before", "after"])
@pytest.mark.parametrize("side", ["pre", "post"])
def test_encoder_equals_torchs_own_with_its_weights(side, norm, pairs):
    encoder = encoder_of(norm=norm)
    for parameter in encoder.parameters():  # norms that change something
        nn.init.normal_(parameter, std=0.3)
    theirs = torchs_own(encoder, norm)
    batch = make_batch(*pairs(), Padding(encoder=side))

    found = encoder(batch.source, batch.source_mask)

    for row in range(len(batch)):
        real = batch.source_mask[row]
        embedded = math.sqrt(8) * encoder.embedding(batch.source[row][real])
        x = embedded + Sinusoids(8).added(torch.zeros_like(embedded), torch.arange(len(embedded)))
        expected = theirs(x.unsqueeze(0))[0]
        torch.testing.assert_close(found.outputs[row][real], expected, **EXACT)
        torch.testing.assert_close(found.final.hidden[0, row], expected.mean(0), **EXACT)
    assert (found.outputs[~batch.source_mask] == 0).all()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_vectors_of_a_sentence_ignore_its_batch_and_its_pads(positions, pairs):
    encoder = encoder_of(positions=positions, longest=8 if positions == "learned" else None)
    sources, targets = pairs()
    found = {}
    for side in ("pre", "post"):
        batch = make_batch(sources, targets, Padding(encoder=side))
        encoded = encoder(batch.source, batch.source_mask)
        found[side] = encoded.outputs[batch.source_mask], encoded.final.hidden
    torch.testing.assert_close(found["pre"], found["post"], **EXACT)
    alone = [make_batch([source], [[]], Padding()) for source in sources]
    each = [encoder(batch.source, batch.source_mask).outputs[0] for batch in alone]
    torch.testing.assert_close(found["pre"][0], torch.cat(each), **EXACT)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_order_of_the_tokens_matters(positions):
    encoder = encoder_of(positions=positions, longest=8 if positions == "learned" else None)
    mask = torch.ones(1, 3, dtype=torch.bool)
    one = encoder(torch.tensor([[5, 6, 7]]), mask).outputs[0, 2]
    other = encoder(torch.tensor([[6, 5, 7]]), mask).outputs[0, 2]
    assert not torch.allclose(one, other, rtol=0, atol=1e-3)


def test_pads_that_are_read_are_looked_at_like_words(pairs):
    padding = Padding(encoder="post", recurrence="read")
    encoder = encoder_of(padding)
    batch = make_batch(*pairs(), padding)
    found = encoder(batch.source, batch.source_mask)
    everything = torch.ones_like(batch.source_mask)
    torch.testing.assert_close(
        found.outputs, encoder_of()(batch.source, everything).outputs, **EXACT
    )


def test_sinusoids_are_the_papers():
    found = Sinusoids(6).added(torch.zeros(1, 5, 6).double(), torch.arange(5).unsqueeze(0))
    for p in range(5):
        for i in range(3):
            angle = p / 10_000 ** (2 * i / 6)
            np.testing.assert_allclose(found[0, p, 2 * i], math.sin(angle), rtol=0, atol=1e-7)
            np.testing.assert_allclose(found[0, p, 2 * i + 1], math.cos(angle), rtol=0, atol=1e-7)


def test_products_of_turned_vectors_know_their_distance_alone():
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64)
    rotary = RotaryPositions()

    def product(p: int, q: int) -> torch.Tensor:
        turned = [
            rotary.turned(vector, torch.tensor([[position]]))
            for vector, position in ((query, p), (key, q))
        ]
        return (turned[0] * turned[1]).sum()

    torch.testing.assert_close(product(0, 3), product(20, 23), rtol=0, atol=1e-5)
    assert not torch.isclose(product(0, 3), product(0, 4), rtol=0, atol=1e-3)
    torch.testing.assert_close(product(7, 7), (query * key).sum(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"embedding_size": 10, "self_attention_heads": 4},
            "must be a multiple of .*, got 10 and 4",
        ),
        ({"embedding_size": 7, "self_attention_heads": 1}, "must be even, got 7"),
        ({"embedding_size": 6, "positions": "rotary"}, "each of 2 heads has 3"),
        ({"positions": "learned"}, "positions=learned needs longest"),
        ({"longest": 9}, "positions=sinusoidal have no limit"),
    ],
)
def test_widths_that_do_not_go_together_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        encoder_of(**settings)


def test_sentence_beyond_the_learned_positions_is_refused():
    encoder = encoder_of(positions="learned", longest=3)
    source, mask = torch.tensor([[5, 6, 7, 3]]), torch.ones(1, 4, dtype=torch.bool)
    assert encoder(source[:, 1:], mask[:, 1:]).outputs.shape == (1, 3, 8)
    with pytest.raises(ExperimentError, match=r"model.encoder.longest is 3, but .* 4 tokens"):
        encoder(source, mask)


def test_a_pad_stands_where_no_position_is_learned():
    """Pads count on behind the last real token, and are never looked at."""
    encoder = encoder_of(positions="learned", longest=3)
    batch = make_batch([[5, 6], [7]], [[], []], Padding(encoder="post"))
    source = torch.nn.functional.pad(batch.source, (0, 2), value=PAD)
    mask = source != PAD
    found = encoder(source, mask)
    expected = encoder(batch.source, batch.source_mask)
    torch.testing.assert_close(found.outputs[:, :3], expected.outputs, **EXACT)
