"""With a mask and skipped pads the scheme changes no output, loss or gradient; without them it does, measurably."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
import yaml

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.search.greedy import GreedySearch
from attnlab.training.loss import summed_nll

CONF = Path(__file__).resolve().parents[2] / "conf" / "padding"
SCHEMES = list(itertools.product(("pre", "post"), ("pre", "post")))


def run(tiny_model, pairs, padding: Padding, coins: bool = False, **choices):
    """Loss, gradients, and per sentence the readout and attention weights at real tokens alone."""
    model = tiny_model(padding=padding, **choices)
    batch = make_batch(*pairs(), padding)
    feed = None
    if coins:  # the same coin for the same token, wherever it stands
        feed = torch.ones_like(batch.target_mask)
        for row, length in enumerate(batch.target_mask.sum(1).tolist()):
            feed[row, batch.target_mask[row]] = torch.arange(length) % 3 != 1
    unrolled = model(batch, feed)
    loss = summed_nll(model.output, unrolled, batch)
    loss = loss if unrolled.coverage_loss is None else loss + unrolled.coverage_loss
    loss.backward()
    outputs = [unrolled.readout[row][batch.target_mask[row]] for row in range(len(batch))]
    weights = None
    if unrolled.attention_weights is not None:
        weights = [
            unrolled.attention_weights[row][batch.target_mask[row]][:, batch.source_mask[row]]
            for row in range(len(batch))
        ]
    return loss, {name: p.grad for name, p in model.named_parameters()}, outputs, weights, unrolled, batch


MODELS = [
    *itertools.product([{"decoder": "attend_then_step"}, {"decoder": "step_then_attend"}], ["rnn", "gru", "lstm"]),
    *itertools.product([{"decoder": "no_attention"}], ["rnn", "gru", "lstm"]),
    ({"reverse_source": True, "coverage": 1.0, "scope": "local_p", "input_feeding": "expected_embedding"}, "lstm"),
    ({"decoder": "step_then_attend", "scope": "local_m", "heads": 2, "input_feeding": "attentional_hidden"}, "gru"),
    ({"attention": "location", "skipping": "flipped", "bridge": "first_backward"}, "lstm"),
]


@pytest.mark.parametrize(("parts", "cell"), MODELS, ids=str)
@pytest.mark.parametrize("coins", [False, True])
def test_four_schemes_give_one_result(parts, cell, coins, tiny_model, pairs):
    choices = {**parts, "cell": cell, "layers": 2, "coins": coins}
    first = run(tiny_model, pairs, Padding(encoder="post", decoder="post"), **choices)
    assert all(gradient.any() for gradient in first[1].values())
    for encoder_side, decoder_side in SCHEMES:
        other = run(tiny_model, pairs, Padding(encoder=encoder_side, decoder=decoder_side), **choices)
        # summed_nll itself works in single precision
        torch.testing.assert_close(other[0], first[0], rtol=1e-6, atol=0)
        for ours, theirs in zip(other[2], first[2], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        if first[3] is not None:
            for ours, theirs in zip(other[3], first[3], strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        for name, gradient in first[1].items():
            torch.testing.assert_close(other[1][name], gradient, rtol=1e-6, atol=1e-7)


def test_gradients_agree_in_double_precision_too(tiny_model, pairs):
    def gradients(padding: Padding):
        model = tiny_model(padding=padding, cell="lstm", layers=2)
        batch = make_batch(*pairs(), padding)
        logits = model.output(model(batch).readout[batch.target_mask])
        torch.nn.functional.cross_entropy(logits, batch.target_output[batch.target_mask], reduction="sum").backward()
        return [p.grad for p in model.parameters()]

    first, *others = (gradients(Padding(encoder=e, decoder=d)) for e, d in SCHEMES)
    for other in others:
        for ours, theirs in zip(other, first, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend"])
@pytest.mark.parametrize("side", ["pre", "post"])
def test_without_a_mask_pads_take_weight(decoder, side, tiny_model, pairs):
    padding = Padding(encoder=side, attention_masked=False)
    *_, unrolled, batch = run(tiny_model, pairs, padding, decoder=decoder)
    pad_mass = unrolled.attention_weights.masked_fill(batch.source_mask.unsqueeze(1), 0).sum(-1)
    has_pads = ~batch.source_mask.all(1)
    assert (pad_mass[has_pads] > 0).all()
    assert (pad_mass[~has_pads] == 0).all()
    torch.testing.assert_close(unrolled.attention_weights.sum(-1), torch.ones_like(pad_mass))


@pytest.mark.parametrize(("encoder_side", "decoder_side"), SCHEMES)
def test_reading_pads_changes_the_outputs(encoder_side, decoder_side, tiny_model, pairs):
    skip = run(tiny_model, pairs, Padding(encoder=encoder_side, decoder=decoder_side))
    read = run(tiny_model, pairs, Padding(encoder=encoder_side, decoder=decoder_side, recurrence="read"))
    longest_source, longest_target = 2, 1  # rows of `pairs`
    for row, (ours, theirs) in enumerate(zip(read[2], skip[2], strict=True)):
        sees_pads = row != longest_source or (decoder_side == "pre" and row != longest_target)
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-9) != sees_pads, row


def test_trailing_pads_of_the_target_reach_no_real_token(tiny_model, pairs):
    """`read` in a decoder whose pads come last: what follows the sentence cannot change it."""
    padding = Padding(encoder="post", decoder="post", recurrence="read")
    model = tiny_model(padding=padding)
    sources, targets = pairs(source_lengths=(4, 4), target_lengths=(2, 5))
    both = model(make_batch(sources, targets, padding)).readout[0, :3]
    alone = model(make_batch(sources[:1], targets[:1], padding)).readout[0]
    torch.testing.assert_close(both, alone, rtol=0, atol=1e-12)


def test_search_sees_no_scheme_either(tiny_model, pairs):
    found = []
    for side in ("pre", "post"):
        padding = Padding(encoder=side)
        batch = make_batch(*pairs(), padding)
        model = tiny_model(padding=padding, scale=3.0)
        found.append(GreedySearch(9)(model, batch.source, batch.source_mask))
    for (ours,), (theirs,) in zip(*found, strict=True):
        assert ours.tokens == theirs.tokens
        assert ours.score == pytest.approx(theirs.score, abs=1e-5)


def test_padding_presets_match_their_names():
    for encoder_side, decoder_side in SCHEMES:
        preset = yaml.safe_load((CONF / f"{encoder_side}_{decoder_side}.yaml").read_text())
        assert preset == {
            "_target_": "attnlab.batch.Padding",
            "encoder": encoder_side,
            "decoder": decoder_side,
            "attention_masked": True,
            "recurrence": "skip",
        }
    assert yaml.safe_load((CONF / "unmasked.yaml").read_text())["attention_masked"] is False
    assert yaml.safe_load((CONF / "unmasked_read.yaml").read_text())["recurrence"] == "read"
