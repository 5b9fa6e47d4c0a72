"""Every combination of the parts builds and learns, or is refused with a sentence. None of them crashes."""

from __future__ import annotations

import itertools

import pytest
import torch

from attnlab.batch import Padding
from attnlab.composition.error import ExperimentError
from attnlab.data.padding import make_batch
from attnlab.training.loss import summed_nll

CELLS = ["rnn", "gru", "lstm"]
DECODERS = ["attend_then_step", "step_then_attend", "no_attention"]
SCORES = ["dot", "general", "bahdanau", None]


def train_one_step(model, batch) -> None:
    """A step of plain descent on the loss must lower it, and must reach every parameter."""
    model.train()
    before = summed_nll(model.output, model(batch), batch)
    before.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{name} gets no gradient"
        assert parameter.grad.isfinite().all(), name
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-3 * parameter.grad
        assert summed_nll(model.output, model(batch), batch) < before


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("bridge", ["linear", "copy", "zero"])
@pytest.mark.parametrize(("cell", "decoder_cell"), [*((c, c) for c in CELLS), ("lstm", "gru"), ("gru", "lstm")])
def test_parts_that_fit_learn_and_others_are_refused(decoder, bridge, cell, decoder_cell, tiny_model, pairs):
    batch = make_batch(*pairs(), Padding())
    learned = refused = 0
    for bidirectional, layers, decoder_layers, hidden_size in itertools.product(
        (True, False), (1, 2), (1, 2), (None, 5)
    ):
        choice = {
            "cell": cell,
            "decoder_cell": decoder_cell,
            "bidirectional": bidirectional,
            "layers": layers,
            "decoder_layers": decoder_layers,
            "decoder_hidden_size": hidden_size,
            "bridge": bridge,
            "decoder": decoder,
        }
        fits = {
            "linear": layers == decoder_layers,
            "copy": layers == decoder_layers and hidden_size is None and (cell == "lstm") == (decoder_cell == "lstm"),
            "zero": decoder != "no_attention",  # such a decoder would never hear of the source
        }[bridge]
        if fits:
            train_one_step(tiny_model(**choice), batch)
            learned += 1
        else:
            with pytest.raises(ExperimentError) as caught:
                tiny_model(**choice)
            (problem,) = caught.value.problems
            assert problem.startswith(("model.bridge", "model.decoder")), problem
            assert "choose model/" in problem
            refused += 1
    assert learned + refused == 16


@pytest.mark.parametrize("context", ["initial_state", "every_step"])
@pytest.mark.parametrize("cell", CELLS)
def test_one_context_vector(context, cell, tiny_model, pairs):
    model = tiny_model(decoder="no_attention", context=context, cell=cell, layers=2)
    train_one_step(model, make_batch(*pairs(), Padding()))


def test_a_context_at_every_step_needs_no_bridge(tiny_model, pairs):
    model = tiny_model(decoder="no_attention", context="every_step", bridge="zero")
    train_one_step(model, make_batch(*pairs(), Padding()))


@pytest.mark.parametrize(("decoder", "score"), itertools.product(DECODERS, SCORES))
def test_scores_and_decoders(decoder, score, tiny_model, pairs):
    wants_score = decoder != "no_attention"
    if wants_score == (score is not None):
        train_one_step(tiny_model(decoder=decoder, attention=score), make_batch(*pairs(), Padding()))
        return
    with pytest.raises(ExperimentError) as caught:
        tiny_model(decoder=decoder, attention=score)
    (problem,) = caught.value.problems
    assert problem.startswith("model.decoder: this decoder ")
    assert "model/decoder=no_attention" in problem if wants_score else "model/attention=none" in problem
    assert "model.attention is " + ("null" if wants_score else f"{score.capitalize()}Score") in problem


def test_dot_needs_one_width(tiny_model):
    with pytest.raises(ExperimentError, match=r"dot score needs a query and keys of one width.*has 5 .*output 8"):
        tiny_model(attention="dot", decoder_hidden_size=5)
    tiny_model(attention="dot", decoder_hidden_size=5, hidden_size=5, bidirectional=False)


@pytest.mark.parametrize("decoder", DECODERS)
def test_bfloat16(decoder, tiny_model, pairs):
    model = tiny_model(decoder=decoder, cell="lstm", dtype=torch.float32).train()
    batch = make_batch(*pairs(), Padding())
    exact = summed_nll(model.output, model(batch), batch)
    with torch.autocast("cpu", torch.bfloat16):
        loss = summed_nll(model.output, model(batch), batch)
    assert loss.dtype == torch.float32
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    torch.testing.assert_close(loss, exact, rtol=0.02, atol=0)
