"""Gates on the context, and dropout on attention weights."""

from __future__ import annotations

import pytest
import torch
from composed_variants import part_of, usual_first

from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.attention import Attention
from attnlab.model.gates import ContextGate, ElementwiseGate, PerHeadGate

GATES = [name for name in usual_first("gate") if name != "none"]


def test_gate_of_each_head_opens_that_head_alone():
    gate = PerHeadGate(query_size=3, heads=2)
    torch.nn.init.zeros_(gate.W.weight)
    gate.W.bias.data = torch.tensor([100.0, -100.0])
    context = torch.rand(2, 4, 6) + 1
    behind = gate(torch.rand(2, 4, 3), context)
    assert torch.equal(behind[..., :3], context[..., :3])
    assert (behind[..., 3:].abs() < 1e-30).all()


@pytest.mark.parametrize("kind", [ElementwiseGate, PerHeadGate])
def test_gradients_of_gates_match_finite_differences(kind):
    sizes = {"query_size": 3, "context_size": 4, "heads": 2}
    gate = part_of("gate", {ElementwiseGate: "elementwise", PerHeadGate: "per_head"}[kind])(**sizes)
    assert type(gate) is kind
    gate = gate.double()
    query, context = torch.rand(2, 2, 3).double(), torch.rand(2, 2, 4).double()
    given = [query.requires_grad_(), context.requires_grad_(), *gate.parameters()]
    assert torch.autograd.gradcheck(lambda *each: gate(*each[:2]), given)


@pytest.mark.parametrize("gate", GATES)
def test_gate_without_an_attention_is_refused(gate, tiny_model):
    with pytest.raises(ExperimentError, match="gate is chosen for an attention"):
        tiny_model(decoder="no_attention", gate=gate)


def test_heads_that_take_no_gate_refuse_one(tiny_model, monkeypatch):
    from attnlab.model.attention import mechanism

    monkeypatch.setattr(mechanism, "runtime_arguments", lambda target: ["head"])
    with pytest.raises(ExperimentError, match="MultiHeadAttention takes none"):
        tiny_model(heads=2, gate="elementwise")


def test_gate_sees_the_query_and_not_the_projected_one(tiny_model):
    model = tiny_model(heads=2, projection=5, gate="elementwise")
    gate = model.decoder.attention.gate
    assert isinstance(gate, ContextGate)
    assert gate.W.in_features == model.decoder.body.state_shape.size
    assert gate.W.out_features == model.decoder.attention.W_O.in_features


@pytest.mark.parametrize("heads", [None, 2])
def test_attention_dropout_is_on_the_average_of_a_training_alone(heads, tiny_model, pairs):
    plain, dropped = (
        tiny_model(heads=heads, attention_dropout=rate, history="coverage") for rate in (0.0, 0.5)
    )
    batch = make_batch(*pairs(), plain.padding)
    found, expected = dropped(batch), plain(batch)  # in evaluation
    assert torch.equal(found.reading.readout, expected.reading.readout)
    assert torch.equal(found.attention_weights, expected.attention_weights)

    dropped.train()
    torch.manual_seed(1)
    trained = dropped(batch)
    assert not torch.equal(trained.reading.readout, expected.reading.readout)
    sums = trained.attention_weights.sum(-1)[batch.target_mask]
    assert torch.allclose(sums, torch.ones_like(sums))  # those that are shown are none dropped


def test_mean_over_dropped_weights_is_the_context(tiny_model):
    attention = tiny_model(attention="dot", attention_dropout=0.25).decoder.attention
    assert isinstance(attention, Attention)
    attention.train()
    torch.manual_seed(1)
    weights = torch.full((1, 1, 4), 0.25).double()
    drawn = torch.stack([attention.dropout(weights) for _ in range(4000)])
    assert drawn.unique().tolist() == pytest.approx([0, 1 / 3])
    assert torch.allclose(drawn.mean(0), weights, atol=0.01)


def test_dropout_without_an_attention_is_refused(tiny_model):
    with pytest.raises(ExperimentError, match="attention_dropout drops attention weights"):
        tiny_model(decoder="no_attention", attention_dropout=0.1)


@pytest.mark.parametrize("choice", [{"gate": "per_head"}, {"attention_dropout": 0.1}])
def test_hard_attention_refuses_what_stands_on_the_way_to_a_context(choice, tiny_model):
    with pytest.raises(ExperimentError, match="on the way to the context does nothing"):
        tiny_model(decoder="step_then_attend", output="hard_attention", **choice)
