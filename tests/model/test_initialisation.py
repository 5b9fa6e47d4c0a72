"""How weights are drawn, against the papers' words.

Embeddings of pads stay zero, and learned scales as they are.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

WIDE = {
    "hidden_size": 32,
    "embedding_size": 40,
    "source_vocabulary_size": 50,
    "cell": "lstm",
    "dtype": torch.float32,
}


def gates(model):
    """The recurrent matrix of each gate."""
    for name, parameter in model.named_parameters():
        if "weight_hh" in name:
            yield from parameter.detach().split(parameter.shape[1])


def weights(model, part):
    """All numbers of the parameters with this part in their names."""
    return torch.cat([p.detach().flatten() for name, p in model.named_parameters() if part in name])


@pytest.mark.parametrize("name", ["uniform", "glorot", "bahdanau"])
def test_embeddings_of_pads_are_zero_and_scales_stay(name, tiny_model):
    model = tiny_model(initialisation=name, attention="scaled_luong", **WIDE)
    assert not model.encoder.embedding.weight[0].any()
    assert not model.decoder.body.embedding.weight[0].any()
    assert model.encoder.embedding.weight[1:].any(1).all()
    assert model.decoder.attention.score.g == 1


def test_uniform_fills_its_interval(tiny_model):
    model = tiny_model(initialisation="uniform", **WIDE)
    for drawn in (weights(model, ""), weights(model, "bias")):
        assert drawn.abs().max() <= 0.1
        assert float(drawn.mean()) == pytest.approx(0, abs=0.01)
        assert float(drawn.std()) == pytest.approx(0.1 / math.sqrt(3), rel=0.05)


def test_glorot_scales_each_gate_by_its_own_width(tiny_model):
    model = tiny_model(initialisation="glorot", **WIDE)
    for gate in gates(model):
        radius = math.sqrt(6 / sum(gate.shape))
        assert gate.abs().max() <= radius
        assert float(gate.std()) == pytest.approx(radius / math.sqrt(3), rel=0.1)
    score = model.decoder.attention.score
    assert float(score.W.weight.detach().std()) == pytest.approx(
        math.sqrt(2 / sum(score.W.weight.shape)), rel=0.2
    )
    assert 0 < score.v.abs().max() <= math.sqrt(6 / (1 + len(score.v)))
    assert len(weights(model, "bias_hh")) > 0
    assert not weights(model, "bias").any()


def test_bahdanau_draws_as_appendix_b_says(tiny_model):
    model = tiny_model(initialisation="bahdanau", **WIDE)
    for gate in gates(model):
        torch.testing.assert_close(gate @ gate.T, torch.eye(len(gate)))
    score = model.decoder.attention.score
    assert not score.v.any()
    assert float(score.U.weight.detach().std()) == pytest.approx(0.001, rel=0.2)
    assert float(score.W.weight.detach().std()) == pytest.approx(0.001, rel=0.2)
    assert float(model.output.weight.detach().std()) == pytest.approx(0.01, rel=0.1)
    assert not weights(model, "bias").any()


@pytest.mark.parametrize("name", ["uniform", "glorot", "bahdanau"])
def test_layer_norms_still_normalise(name, tiny_model):
    model = tiny_model(initialisation=name, encoder="self_attention", decoder="transformer")
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    assert norms
    for norm in norms:
        assert (norm.weight == 1).all()
        assert not norm.bias.any()
