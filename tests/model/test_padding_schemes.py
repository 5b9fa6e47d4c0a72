"""With a mask and skipped pads the scheme changes no output, loss or gradient.

Without them it does, measurably.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
import yaml
from composed_variants import usual_first
from one_training_step import exact_loss

from attnlab.batch import Padding
from attnlab.data.padding import make_batch

CONF = Path(__file__).resolve().parents[2] / "conf" / "padding"
SCHEMES = list(itertools.product(("pre", "post"), ("pre", "post")))


def run(tiny_model, pairs, padding: Padding, coins: bool = False, **choices):
    """Gradients by name, the loss, and per sentence the readout and attention weights.

    The last two at real tokens alone.
    """
    model = tiny_model(padding=padding, **choices)
    batch = make_batch(*pairs(), padding)
    feed = None
    if coins:  # the same coin for the same token, wherever it stands
        feed = torch.ones_like(batch.target_mask)
        for row, length in enumerate(batch.target_mask.sum(1).tolist()):
            feed[row, batch.target_mask[row]] = torch.arange(length) % 3 != 1
    unrolled = model(batch, feed)
    loss = exact_loss(model, unrolled, batch)
    loss.backward()
    outputs = [unrolled.reading.readout[row][real] for row, real in enumerate(batch.target_mask)]
    weights = []
    if unrolled.attention_weights is not None:
        real = zip(unrolled.attention_weights, batch.target_mask, batch.source_mask, strict=True)
        weights = [rows[words][:, seen] for rows, words, seen in real]
    return {name: p.grad for name, p in model.named_parameters()}, [loss, *outputs, *weights]


MODELS = [
    *itertools.product(
        [{"decoder": name} for name in usual_first("decoder")], ["rnn", "gru", "lstm"]
    ),
    (
        {
            "reverse_source": True,
            "history": "coverage",
            "scope": "local_p",
            "input_feeding": "expected_embedding",
        },
        "lstm",
    ),
    (
        {
            "decoder": "step_then_attend",
            "scope": "local_m",
            "heads": 2,
            "input_feeding": "attentional_hidden",
        },
        "gru",
    ),
    ({"attention": "location", "bridge": "first_backward"}, "lstm"),
    ({"encoder": "convolutional", "bridge": "mean"}, "gru"),
    ({"encoder": "averaging"}, "lstm"),
    ({"encoder": "stacked"}, "lstm"),
    ({"encoder": "bag_of_words", "decoder": "step_then_attend"}, "gru"),
]


@pytest.mark.parametrize(("parts", "cell"), MODELS, ids=str)
@pytest.mark.parametrize("coins", [False, True])
def test_four_schemes_give_one_result(parts, cell, coins, tiny_model, pairs):
    choices = {**parts, "cell": cell, "layers": 2, "coins": coins}
    gradients, results = run(tiny_model, pairs, Padding(encoder="post", decoder="post"), **choices)
    assert all(gradient.any() for gradient in gradients.values())
    for encoder_side, decoder_side in SCHEMES:
        others = run(
            tiny_model, pairs, Padding(encoder=encoder_side, decoder=decoder_side), **choices
        )
        torch.testing.assert_close(others, (gradients, results), rtol=0, atol=1e-11)


@pytest.mark.parametrize(("encoder_side", "decoder_side"), SCHEMES)
def test_reading_pads_changes_the_outputs(encoder_side, decoder_side, tiny_model, pairs):
    sides = {"encoder": encoder_side, "decoder": decoder_side}
    _, (_, *skip) = run(tiny_model, pairs, Padding(**sides))
    _, (_, *read) = run(tiny_model, pairs, Padding(**sides, recurrence="read"))
    longest_source, longest_target = 2, 1  # rows of `pairs`
    for row, (ours, theirs) in enumerate(zip(read[:4], skip[:4], strict=True)):
        sees_pads = row != longest_source or (decoder_side == "pre" and row != longest_target)
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-9) != sees_pads, row


def test_trailing_pads_of_the_target_reach_no_real_token(tiny_model, pairs):
    """`read` in a decoder whose pads come last: what follows the sentence cannot change it."""
    padding = Padding(encoder="post", decoder="post", recurrence="read")
    model = tiny_model(padding=padding)
    sources, targets = pairs(source_lengths=(4, 4), target_lengths=(2, 5))
    both = model(make_batch(sources, targets, padding)).reading.readout[0, :3]
    alone = model(make_batch(sources[:1], targets[:1], padding)).reading.readout[0]
    torch.testing.assert_close(both, alone, rtol=0, atol=1e-12)


def test_padding_presets_match_their_names():
    for encoder_side, decoder_side in SCHEMES:
        preset = yaml.safe_load((CONF / f"{encoder_side}_{decoder_side}.yaml").read_text())
        assert preset.pop("_target_") == "attnlab.batch.Padding"
        assert preset == asdict(
            Padding(encoder_side, decoder_side, attention_masked=True, recurrence="skip")
        )
    assert yaml.safe_load((CONF / "unmasked.yaml").read_text())["attention_masked"] is False
    assert yaml.safe_load((CONF / "unmasked_read.yaml").read_text())["recurrence"] == "read"
