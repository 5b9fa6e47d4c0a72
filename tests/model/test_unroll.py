"""The unrolled target against a plain loop over the one step.

Fed the reference, fed guesses, and mixed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from composed_variants import usual_first
from covering_array import covering_array
from legal_choices import arguments

from attnlab.batch import BOS, PAD, Padding
from attnlab.data.padding import make_batch
from attnlab.model.fast import speed_up

DECODERS = usual_first("decoder")
CARRYING = {  # everything that goes from step to step, alone and together
    **{name: {"decoder": name} for name in DECODERS},
    "every_step": {
        "decoder": "no_attention",
        "context": "every_step",
        "input_feeding": "expected_embedding",
    },
    "fed_covered_windows": {
        "input_feeding": "expected_embedding",
        "history": "coverage",
        "heads": 2,
        "scope": "local_p",
    },
    "fed_carried_covered": {
        "decoder": "step_then_attend",
        "context": "readout_and_previous_in_cell",
        "input_feeding": "attentional_hidden",
        "history": "coverage",
        "scope": "local_m",
    },
    "location_sparse": {
        "attention": "location",
        "normaliser": "sparsemax",
        "scope": "local_p_renormalised",
    },
}
every_side = pytest.mark.parametrize("side", ["pre", "post"])


def by_steps(model, source, target, feed, padding):
    """Logits (T, V) and attention weights of one sentence alone.

    feed[t] False takes the guess of step t - 1.
    """
    batch = make_batch([source], [target], padding)
    memory, state = model.encode(batch.source, batch.source_mask)
    logits, weights, followed_a_guess = [], [], False
    for t, token in enumerate([BOS, *target]):
        last = torch.tensor([token])
        if t > 0 and not feed[t]:
            guess = logits[-1].clone()
            guess[[PAD, BOS]] = -torch.inf
            last = guess.argmax(-1, keepdim=True)
            followed_a_guess |= last.item() != token
        out, state, attention = model.step(last, state, memory)
        logits.append(out[0])
        weights.append(None if attention is None else attention[0])
    return torch.stack(logits), weights, followed_a_guess


@pytest.mark.parametrize(
    ("decoder", "feeding"),
    [
        ("attend_then_step", "expected_embedding"),
        ("step_then_attend", "expected_embedding"),
        ("step_then_attend", "attentional_hidden"),
    ],
)
def test_fed_readout_is_the_one_that_the_output_layer_reads(decoder, feeding, tiny_model, pairs):
    """Made once a step, and not a second time under another dropout.

    Where none is fed, all steps' at once.
    """
    batch = make_batch(*pairs(), Padding())

    def times_made(**choices):
        model, made = tiny_model(decoder=decoder, **choices), []
        model.decoder.body.readout.register_forward_hook(lambda *_: made.append(1))
        model(batch)
        return len(made)

    assert times_made(input_feeding=feeding) == batch.target_input.shape[1]
    assert times_made(history="coverage") == 1


@pytest.mark.parametrize("choices", CARRYING.values(), ids=CARRYING)
@every_side
@pytest.mark.parametrize(
    ("pattern", "share"), [("reference", 2.0), ("guesses", -1.0), ("mixed", 0.5)]
)
def test_unroll_is_a_loop_over_the_step(choices, side, pattern, share, tiny_model, pairs):
    padding = Padding(encoder=side, decoder=side)
    model = tiny_model(**choices, cell="lstm", layers=2, padding=padding, scale=3.0)
    sources, targets = pairs()
    batch = make_batch(sources, targets, padding)
    coins = torch.rand(batch.target_mask.shape, generator=torch.Generator().manual_seed(1)) < share
    unrolled = model(batch, coins)
    logits = model.output(unrolled.reading)
    followed_a_guess = False
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        real = batch.target_mask[row]
        expected, weights, followed = by_steps(model, source, target, coins[row][real], padding)
        torch.testing.assert_close(logits[row][real], expected, rtol=0, atol=1e-11)
        if weights[0] is not None:
            ours = unrolled.attention_weights[row][real][:, batch.source_mask[row]]
            torch.testing.assert_close(ours, torch.stack(weights), rtol=0, atol=1e-11)
        followed_a_guess |= followed
    # Else the guesses would have been the reference
    assert followed_a_guess == (pattern != "reference")


# Single precision has a library of its own: how near the logits must be, and the gradients
# (relative, absolute)
# where the greatest of a parameter is 1 at most.
PRECISIONS = [(torch.float64, 1e-11, (1e-9, 1e-10)), (torch.float32, 1e-5, (1e-5, 1e-5))]


@pytest.mark.parametrize(
    ("dtype", "close", "gradients_close"), PRECISIONS, ids=["double", "single"]
)
@pytest.mark.parametrize("number", range(len(covering_array()[0])))
def test_every_pair_of_choices_unrolls_as_it_steps(
    number, dtype, close, gradients_close, tiny_model, pairs
):
    """Outputs and the gradient of every parameter, whatever the padding.

    Of the whole batch, step by step, where no pads come first. `step` alone is plain; `forward`
    takes its fast paths.
    """
    row = covering_array()[0][number]
    padding = replace(row["padding"], decoder="post")
    model = speed_up(tiny_model(**arguments({**row, "padding": padding}), scale=2.0, dtype=dtype))
    batch = make_batch(*pairs((4, 1, 3), (2, 3, 1)), padding)
    logits = model.output(model(batch).reading)
    memory, state = model.encode(batch.source, batch.source_mask)
    steps = []
    for t in range(batch.target_input.shape[1]):
        found, state, _ = model.step(batch.target_input[:, t], state, memory)
        steps.append(found)
    by_steps = torch.stack(steps, dim=1)
    if model.output.follows_alignment:  # a pad was not written, so nothing goes on from it
        logits, by_steps = logits[batch.target_mask], by_steps[batch.target_mask]
    # Those of a pointer network are logarithms of single weights, which may be far from 0.
    relative = close if model.output.only_copies else 0
    # Rounding grows with the logits, which reach 30 where weights do not add up to 1.
    absolute = close * max(1.0, float(by_steps.detach().abs().max()) / 10)
    torch.testing.assert_close(logits, by_steps, rtol=relative, atol=absolute)
    weights = torch.randn(
        logits.shape, generator=torch.Generator().manual_seed(1), dtype=logits.dtype
    )
    parameters = dict(model.named_parameters())
    ours, plain = (
        torch.autograd.grad((found * weights).sum(), list(parameters.values()), allow_unused=True)
        for found in (logits, by_steps)
    )
    for name, mine, expected in zip(parameters, ours, plain, strict=True):
        assert (mine is None) == (expected is None), name
        if mine is not None:
            within = dict(zip(("rtol", "atol"), gradients_close, strict=True))
            size = max(1.0, float(expected.abs().max()))
            torch.testing.assert_close(
                mine / size, expected / size, **within, msg=lambda m, name=name: f"{name}: {m}"
            )


FED_BACK = {  # of each decoder: with and without something that feeds back
    "attend_then_step": (
        {"context": "readout"},
        [{}, {"history": "coverage"}, {"input_feeding": "expected_embedding"}],
    ),
    "step_then_attend": (
        {},
        [
            {"context": "readout_and_previous_in_cell"},
            {"history": "coverage"},
            {"input_feeding": "attentional_hidden"},
        ],
    ),
    "no_attention": ({"context": "every_step"}, [{"input_feeding": "expected_embedding"}]),
}


@pytest.mark.parametrize(
    ("decoder", "free", "bound"), [(name, *choices) for name, choices in FED_BACK.items()]
)
def test_all_steps_are_taken_at_once_where_nothing_feeds_back(
    decoder, free, bound, tiny_model, pairs, monkeypatch
):
    batch = make_batch(*pairs(), Padding())

    def steps_taken(choices, coins=None):
        model = tiny_model(decoder=decoder, **choices)
        taken = []
        step = model.decoder.step
        monkeypatch.setattr(model.decoder, "step", lambda *args: taken.append(1) or step(*args))
        model(batch, coins)
        return len(taken)

    length = batch.target_input.shape[1]
    assert steps_taken(free) == 0
    assert steps_taken(free, torch.ones_like(batch.target_mask)) == length  # a guess may be fed
    assert [steps_taken(choices) for choices in bound] == [length] * len(bound)


@pytest.mark.parametrize("choices", CARRYING.values(), ids=CARRYING)
def test_selected_rows_go_on_as_they_would(choices, tiny_model, pairs):
    """Rows in another order, one of them twice: the next step is theirs."""
    model = tiny_model(**choices, cell="lstm", layers=2, scale=2.0)
    batch = make_batch(*pairs(), Padding())
    memory, state = model.encode(batch.source, batch.source_mask)
    tokens = batch.target_input
    for t in range(3):
        _, state, _ = model.step(tokens[:, t], state, memory)
    rows = torch.tensor([2, 0, 0, 3, 1])
    expected, after, _ = model.step(tokens[:, 3], state, memory)
    found, selected, _ = model.step(tokens[rows, 3], state.select(rows), memory.select(rows))
    torch.testing.assert_close(found, expected[rows], rtol=0, atol=1e-12)
    expected, *_ = model.step(tokens[:, 4], after, memory)
    found, *_ = model.step(tokens[rows, 4], selected, memory.select(rows))
    torch.testing.assert_close(found, expected[rows], rtol=0, atol=1e-12)


def test_sampled_guesses_are_drawn_from_the_models_distribution(tiny_model, monkeypatch):
    """Often the likeliest token and not always.

    Never `<pad>` or `<bos>`, not even where they are the likeliest.
    """
    model = tiny_model(scale=2.0)
    with torch.no_grad():
        model.output.bias[[PAD, BOS]] += 50.0
    batch = make_batch([[5, 6]] * 400, [[4, 4]] * 400, Padding())
    read: list[torch.Tensor] = []
    body, embed = model.decoder.body, model.decoder.body.embed
    monkeypatch.setattr(
        body, "embed", lambda tokens, **more: read.append(tokens) or embed(tokens, **more)
    )
    torch.manual_seed(0)
    unrolled = model(batch, torch.zeros_like(batch.target_mask), sample_guesses=True)
    guesses = read[1]  # the references were read first, all at once
    logits = model.output(unrolled.reading[0, 0])
    logits[[PAD, BOS]] = -torch.inf
    shares = torch.bincount(guesses, minlength=9) / len(guesses)
    assert shares[[PAD, BOS]].sum() == 0
    torch.testing.assert_close(shares.double(), logits.softmax(-1), rtol=0, atol=0.08)
    assert (shares > 0).sum() > 3


@every_side
@pytest.mark.parametrize("recurrence", ["skip", "read"])
@pytest.mark.parametrize(
    ("decoder", "scope"),
    [
        *((decoder, "global") for decoder in DECODERS),
        ("attend_then_step", "local_m"),
        ("step_then_attend", "local_m"),
    ],
)
def test_no_coins_are_all_heads(decoder, side, recurrence, scope, tiny_model, pairs):
    """All steps at once against the loop, which draws no random numbers.

    A window's place counts the steps, leading pads among them where they are read.
    """
    padding = Padding(decoder=side, recurrence=recurrence)
    model = tiny_model(decoder=decoder, padding=padding, scope=scope)
    batch = make_batch(*pairs(), padding)
    before = torch.random.get_rng_state()
    fed = model(batch, torch.ones_like(batch.target_mask), sample_guesses=True).reading.readout
    torch.testing.assert_close(model(batch).reading.readout, fed, rtol=0, atol=1e-12)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("recurrence", ["skip", "read"])
def test_leading_pads_are_never_guessed_over(recurrence, tiny_model, pairs):
    """With pads first, coins at pads and at <bos> change nothing."""
    padding = Padding(decoder="pre", recurrence=recurrence)
    model = tiny_model(padding=padding, scale=3.0)
    batch = make_batch(*pairs(), padding)
    coins = torch.ones_like(batch.target_mask)
    coins[~batch.target_mask | (batch.target_input == BOS)] = False
    real = batch.target_mask
    torch.testing.assert_close(
        model(batch, coins).reading.readout[real],
        model(batch).reading.readout[real],
        rtol=0,
        atol=1e-12,
    )


def test_guesses_are_fed_as_tokens_and_let_no_gradient_through(tiny_model, pairs):
    """The embedding of a guess learns, the choice of the guess does not.

    As in scheduled sampling.
    """
    model = tiny_model(scale=3.0)
    batch = make_batch(*pairs(), Padding())
    readout = model(batch, torch.zeros_like(batch.target_mask)).reading.readout
    (gradient,) = torch.autograd.grad(readout.sum(), model.output.weight, allow_unused=True)
    # The output layer chose the guesses, and nothing of that is in the graph
    assert gradient is None
