"""The unrolled target against a plain loop over the one step: fed the reference, fed guesses, and mixed."""

from __future__ import annotations

import pytest
import torch

from attnlab.batch import BOS, Padding
from attnlab.data.padding import make_batch

DECODERS = ["attend_then_step", "step_then_attend", "no_attention"]
every_decoder = pytest.mark.parametrize("decoder", DECODERS)
every_side = pytest.mark.parametrize("side", ["pre", "post"])


def by_steps(model, source, target, feed, padding):
    """Logits (T, V) and attention weights of one sentence alone; feed[t] False takes the guess of step t - 1."""
    batch = make_batch([source], [target], padding)
    memory, state = model.encode(batch.source, batch.source_mask)
    logits, weights = [], []
    for t, token in enumerate([BOS, *target]):
        last = torch.tensor([token]) if t == 0 or feed[t] else logits[-1].argmax(-1, keepdim=True)
        out, state, attention = model.step(last, state, memory)
        logits.append(out[0])
        weights.append(None if attention is None else attention[0])
    return torch.stack(logits), weights


@every_decoder
@every_side
@pytest.mark.parametrize("pattern", ["reference", "guesses", "mixed"])
def test_unroll_is_a_loop_over_the_step(decoder, side, pattern, tiny_model, pairs):
    padding = Padding(encoder=side, decoder=side)
    model = tiny_model(decoder=decoder, cell="lstm", layers=2, padding=padding, scale=3.0)
    sources, targets = pairs()
    batch = make_batch(sources, targets, padding)
    coins = (
        torch.rand(batch.target_mask.shape, generator=torch.Generator().manual_seed(1))
        < {
            "reference": 2.0,
            "guesses": -1.0,
            "mixed": 0.5,
        }[pattern]
    )
    unrolled = model(batch, coins)
    logits = model.output(unrolled.readout)
    followed_a_guess = False
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        real = batch.target_mask[row]
        expected, weights = by_steps(model, source, target, coins[row][real], padding)
        torch.testing.assert_close(logits[row][real], expected, rtol=0, atol=1e-11)
        if weights[0] is not None:
            ours = unrolled.attention_weights[row][real][:, batch.source_mask[row]]
            torch.testing.assert_close(ours, torch.stack(weights), rtol=0, atol=1e-11)
        followed_a_guess |= expected.argmax(-1)[:-1].tolist() != target
    assert followed_a_guess  # else the guesses would have been the reference


@every_decoder
@every_side
def test_no_coins_are_all_heads(decoder, side, tiny_model, pairs):
    padding = Padding(decoder=side)
    model = tiny_model(decoder=decoder, padding=padding)
    batch = make_batch(*pairs(), padding)
    assert torch.equal(model(batch).readout, model(batch, torch.ones_like(batch.target_mask)).readout)


@every_side
def test_the_first_position_is_always_fed_bos(side, tiny_model, pairs):
    padding = Padding(decoder=side)
    model = tiny_model(padding=padding, scale=3.0)
    batch = make_batch(*pairs(), padding)
    tails = torch.zeros_like(batch.target_mask)
    guessed, taught = model(batch, tails), model(batch)
    first = batch.target_input == BOS
    assert (first.sum(1) == 1).all()
    torch.testing.assert_close(guessed.readout[first], taught.readout[first], rtol=0, atol=1e-12)
    assert not torch.allclose(guessed.readout[batch.target_mask], taught.readout[batch.target_mask])


@pytest.mark.parametrize("recurrence", ["skip", "read"])
def test_leading_pads_are_never_guessed_over(recurrence, tiny_model, pairs):
    """With pads first, coins at pads and at <bos> change nothing."""
    padding = Padding(decoder="pre", recurrence=recurrence)
    model = tiny_model(padding=padding, scale=3.0)
    batch = make_batch(*pairs(), padding)
    coins = torch.ones_like(batch.target_mask)
    coins[~batch.target_mask | (batch.target_input == BOS)] = False
    real = batch.target_mask
    assert torch.equal(model(batch, coins).readout[real], model(batch).readout[real])


def test_a_coin_for_each_token_and_each_sentence(tiny_model, pairs):
    """One tail changes its own sentence from its own position on, and nothing else."""
    model = tiny_model(scale=3.0)
    sources, targets = pairs()
    batch = make_batch(sources, targets, Padding(), rows=None)
    model.padding = Padding()
    taught = model(batch).readout
    guess = model.output(taught).argmax(-1)
    row, t = next(
        (row, t)
        for row, target in enumerate(targets)
        for t in range(1, len(target) + 1)
        if guess[row, t - 1] != batch.target_input[row, t]
    )
    coins = torch.ones_like(batch.target_mask)
    coins[row, t] = False
    found = model(batch, coins).readout
    changed = (found != taught).any(-1)
    assert changed[row, t]
    assert not changed[row, :t].any()
    changed[row] = False
    assert not changed.any()


def test_guesses_are_fed_as_tokens_and_let_no_gradient_through(tiny_model, pairs):
    """The embedding of a guess learns, the choice of the guess does not: as in scheduled sampling."""
    model = tiny_model(scale=3.0)
    batch = make_batch(*pairs(), Padding())
    readout = model(batch, torch.zeros_like(batch.target_mask)).readout
    (gradient,) = torch.autograd.grad(readout.sum(), model.output.weight, allow_unused=True)
    assert gradient is None  # the output layer chose the guesses, and nothing of that is in the graph
