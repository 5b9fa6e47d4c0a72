"""Whole models against the papers' equations, on each sentence alone.

From the source's tokens to log-probabilities.
"""

from __future__ import annotations

import itertools

import numpy as np
import paper_equations as paper
import pytest
from covering_array import covering_array
from legal_choices import (
    ATTENDING,
    BY_POSITION,
    FACTORS,
    MAKES_ITS_WEIGHTS,
    SCOPES,
    SCORES,
    USUAL,
    WITHOUT_ATTENTION,
    arguments,
    refusal,
)

from attnlab.batch import EOS, Padding
from attnlab.data.padding import make_batch
from attnlab.training.loss import summed_nll

NOT_OF_THE_EQUATIONS = {
    "decoder_hidden_size",
    "readout_size",
    "tied_embeddings",
    "decoder_embedding_size",
    "embedding_size",
    "target_vocabulary_size",
    "padding",
}


def equals_the_equations(row, tiny_model, pairs):
    """Log-probabilities, weights and coverage loss of a batch are those of its sentences.

    The weights are those of the attention; the batch is padded.
    """
    assert refusal(row) is None, row
    given = arguments(row)
    model = tiny_model(**given, scale=2.0)
    sources, targets = pairs()
    batch = make_batch(sources, targets, row["padding"])
    unrolled = model(batch)
    found = model.output(unrolled.reading).log_softmax(-1).detach().numpy()
    assert (unrolled.attention_weights is None) == (row["attention"] is None)
    assert (unrolled.history_loss is None) == (row["history"] != "coverage")
    equations = paper.Model(
        **{name: value for name, value in given.items() if name not in NOT_OF_THE_EQUATIONS}
    )
    w = paper.weights_of(model)
    nll = coverage_loss = 0.0
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        expected = equations.compute(w, source, target)
        real, words = batch.target_mask[number].numpy(), batch.source_mask[number].numpy()
        np.testing.assert_allclose(found[number][real], expected.log_probs, rtol=0, atol=1e-10)
        if unrolled.attention_weights is not None:
            ours = unrolled.attention_weights[number].detach().numpy()[real]
            np.testing.assert_allclose(ours[:, words], expected.weights, rtol=0, atol=1e-10)
            assert (ours[:, ~words] == 0).all()
        nll -= sum(expected.log_probs[t][token] for t, token in enumerate([*target, EOS]))
        coverage_loss += expected.coverage_loss
    # float32 inside
    np.testing.assert_allclose(summed_nll(model.output, unrolled, batch).item(), nll, rtol=1e-6)
    if unrolled.history_loss is not None:
        assert coverage_loss > 0
        np.testing.assert_allclose(unrolled.history_loss.item(), coverage_loss, rtol=0, atol=1e-10)


ALONE = [Padding(encoder, decoder) for encoder in ("pre", "post") for decoder in ("pre", "post")]
ROWS = [row for row in covering_array()[0] if row["padding"] in ALONE]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_models_that_hold_every_pair_of_choices(number, tiny_model, pairs):
    equals_the_equations(ROWS[number], tiny_model, pairs)


def row_of(number: int, **choices):
    """A legal row, its padding and cells by its number."""
    cells = list(itertools.product(["gru", "lstm", "rnn"], repeat=2))[number % 9]
    return (
        USUAL
        | dict(zip(("cell", "decoder_cell"), cells, strict=True))
        | {"padding": ALONE[number % 4]}
        | choices
    )


@pytest.mark.parametrize("decoder", ATTENDING, ids="-".join)
@pytest.mark.parametrize("score", SCORES)
def test_each_score_in_each_decoder(score, decoder, tiny_model, pairs):
    number = SCORES.index(score) + ATTENDING.index(decoder)
    equals_the_equations(row_of(number, attention=score, decoder=decoder), tiny_model, pairs)


def readouts_and_feedings():
    for decoder, readout, feeding in itertools.product(
        [*ATTENDING, *WITHOUT_ATTENTION], FACTORS["readout"], FACTORS["input_feeding"]
    ):
        attention = None if decoder in WITHOUT_ATTENTION else "general"
        choices = {
            "attention": attention,
            "decoder": decoder,
            "input_feeding": feeding,
            "readout": readout,
        }
        if refusal(USUAL | choices) is None:
            yield choices


@pytest.mark.parametrize(
    "choices", [*readouts_and_feedings()], ids=lambda choices: "-".join(map(str, choices.values()))
)
def test_each_feeding_readout_and_decoder(choices, tiny_model, pairs):
    equals_the_equations(row_of(len(choices["decoder"][1]), **choices), tiny_model, pairs)


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend"])
@pytest.mark.parametrize("heads", [None, 2])
@pytest.mark.parametrize("history", ["none", "coverage"])
@pytest.mark.parametrize(
    ("normaliser", "scope"),
    [
        pair
        for pair in itertools.product(FACTORS["normaliser"], SCOPES)
        if refusal(dict(zip(("normaliser", "scope"), pair, strict=True))) is None
    ],
)
def test_each_scope_with_heads_and_coverage(
    normaliser, scope, history, heads, decoder, tiny_model, pairs
):
    """Each head has a window and a coverage of its own."""
    number = SCOPES.index(scope) + 4 * (heads is not None)
    context = (
        "cell_and_readout" if decoder == "attend_then_step" else "readout_and_previous_in_cell"
    )
    score = [score for score in SCORES if score not in BY_POSITION][number]
    choices = {
        "normaliser": normaliser,
        "scope": scope,
        "history": history,
        "heads": heads,
        "attention": score,
    }
    if refusal(choices) is not None:
        pytest.skip("the history needs weights that are at least 0")
    equals_the_equations(row_of(number, decoder=(decoder, context), **choices), tiny_model, pairs)


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend", "conditional_gru"])
@pytest.mark.parametrize("heads", [None, 2])
@pytest.mark.parametrize("history", [*FACTORS["history"], "soft_monotonic", "soft_mocha"])
@pytest.mark.parametrize(
    ("normaliser", "scope"),
    [
        ("softmax", "global"),
        ("softmax", "local_m"),
        ("softmax", "local_p"),
        ("sparsemax", "global"),
        ("sigmoid", "local_p_renormalised"),
    ],
)
def test_each_history_with_scopes_heads_and_decoders(
    normaliser, scope, history, heads, decoder, tiny_model, pairs
):
    """Each head remembers its own weights, and forward attention starts anew where it must."""
    if history.removeprefix("soft_") in MAKES_ITS_WEIGHTS and normaliser != "softmax":
        pytest.skip("a monotonic history makes its weights without a normaliser")
    number = FACTORS["history"].index(history) if history in FACTORS["history"] else len(history)
    context = (
        "readout_and_previous_in_cell" if decoder == "step_then_attend" else "cell_and_readout"
    )
    score = [score for score in SCORES if score not in BY_POSITION][number % 4]
    choices = {
        "normaliser": normaliser,
        "scope": scope,
        "history": history,
        "heads": heads,
        "attention": score,
    }
    equals_the_equations(row_of(number, decoder=(decoder, context), **choices), tiny_model, pairs)


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend", "conditional_gru"])
@pytest.mark.parametrize("heads", [None, 2])
@pytest.mark.parametrize("history", ["none", "forward_with_agent"])
@pytest.mark.parametrize("gate", ["elementwise", "per_head"])
def test_each_gate_with_heads_and_a_history_that_reads_the_context(
    gate, history, heads, decoder, tiny_model, pairs
):
    context = (
        "readout_and_previous_in_cell" if decoder == "step_then_attend" else "cell_and_readout"
    )
    choices = {"gate": gate, "history": history, "heads": heads, "attention": "general"}
    equals_the_equations(row_of(1, decoder=(decoder, context), **choices), tiny_model, pairs)
