"""Each decoder, from the source's tokens to log-probabilities, against the papers' equations."""

from __future__ import annotations

import numpy as np
import paper_equations as paper
import pytest
import torch

from attnlab.batch import BOS, EOS, Padding
from attnlab.data.padding import make_batch
from attnlab.training.loss import summed_nll

CELLS = ["rnn", "gru", "lstm"]
CHOICES = [
    *(
        (decoder, "initial_state", score)
        for decoder in ("attend_then_step", "step_then_attend")
        for score in paper.SCORES
    ),
    ("no_attention", "initial_state", None),
    ("no_attention", "every_step", None),
]


@pytest.mark.parametrize(("decoder", "context", "score"), CHOICES)
@pytest.mark.parametrize("cell", CELLS)
def test_a_padded_batch_equals_the_equations_on_each_sentence(decoder, context, score, cell, tiny_model, pairs):
    layers = 2 if cell == "lstm" else 1
    model = tiny_model(cell=cell, layers=layers, decoder=decoder, context=context, attention=score)
    sources, targets = pairs()
    batch = make_batch(sources, targets, Padding())
    unrolled = model(batch)
    assert (unrolled.attention_weights is None) == (score is None)
    found = model.output(unrolled.readout).log_softmax(-1).detach().numpy()
    w = paper.weights_of(model)
    step = paper.DECODERS[decoder, context]
    total = 0.0
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        values, final = paper.encode(paper.part(w, "encoder."), cell, layers, True, [*source, EOS])
        state = paper.linear_bridge(paper.part(w, "bridge."), final)
        words = batch.source_mask[row].numpy()
        for t, token in enumerate([BOS, *target]):
            score_function = None if score is None else paper.SCORES[score]
            readout, state, weights = step(
                paper.part(w, "decoder."), cell, score_function, token, state, values, final.hidden[-1]
            )
            log_probs = paper.log_softmax(w["output.weight"] @ readout + w["output.bias"])
            np.testing.assert_allclose(found[row, t], log_probs, rtol=0, atol=1e-10)
            if weights is not None:
                ours = unrolled.attention_weights[row, t].detach().numpy()
                np.testing.assert_allclose(ours[words], weights, rtol=0, atol=1e-10)
                assert (ours[~words] == 0).all()
            total -= log_probs[[*target, EOS][t]]
    np.testing.assert_allclose(summed_nll(model.output, unrolled, batch).item(), total, rtol=1e-6)


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend"])
def test_which_state_asks(decoder, tiny_model, pairs):
    """Bahdanau's first look knows no target token; Luong's does."""
    model = tiny_model(decoder=decoder)
    batch = make_batch(*pairs(), Padding())
    memory, state = model.encode(batch.source, batch.source_mask)
    _, _, one = model.step(torch.full((4,), BOS), state, memory)
    _, _, two = model.step(torch.full((4,), 7), state, memory)
    assert torch.equal(one, two) == (decoder == "attend_then_step")


def test_dropout_acts_in_training_only(tiny_model, pairs):
    model = tiny_model(dropout=0.5, layers=2)
    batch = make_batch(*pairs(), Padding())
    assert torch.equal(model(batch).readout, model(batch).readout)
    model.train()
    assert not torch.equal(model(batch).readout, model(batch).readout)
