"""Every pair of choices of model, padding, training and search.

Those that go together stand in a few experiments, which must learn and then find something; the
others are refused with the predicted reason.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from covering_array import covering_array, every_pair, filled, pairs_of
from legal_choices import EQUAL_WIDTHS, FACTORS, OF_TRAINING_AND_SEARCH, USUAL, arguments, refusal
from one_search import check_hypotheses, search_once
from one_training_step import FORCINGS, fed_reference, loss_must_fall, loss_of, train_one_step

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError

ROWS, IMPOSSIBLE = covering_array()


def model_and_batch(row, tiny_model, pairs):
    """Autocast leaves 64 bits as they are, so what is to be rounded has 32."""
    dtype = torch.float32 if row["precision"] == "bf16" else torch.float64
    return tiny_model(**arguments(row), dtype=dtype), make_batch(
        *pairs((4, 1, 3), (2, 3, 1)), row["padding"]
    )


def test_covering_array_holds_every_legal_pair():
    pairs = {pair for choices in every_pair() for pair in pairs_of(choices)}
    held = {pair for row in ROWS for pair in pairs_of(row)}
    impossible = {pair for choices in IMPOSSIBLE for pair in pairs_of(choices)}
    assert held | impossible == pairs
    assert not held & impossible
    assert all(row.keys() == FACTORS.keys() for row in ROWS)
    largest, next_largest = sorted(map(len, FACTORS.values()))[-2:]
    assert len(pairs) == sum(
        len(FACTORS[a]) * len(FACTORS[b]) for a, b in itertools.combinations(FACTORS, 2)
    )
    assert len(impossible) < len(pairs) / 20
    assert len(ROWS) < 2 * largest * next_largest  # their pairs alone take a row each
    assert sum(map(loss_must_fall, ROWS)) > 0.6 * len(ROWS)
    print(
        f"{len(FACTORS)} factors, {len(pairs)} pairs, {len(impossible)} of them impossible, "
        f"{len(ROWS)} rows"
    )


@pytest.mark.parametrize("coin", OF_TRAINING_AND_SEARCH["coin"])
@pytest.mark.parametrize("forcing", FORCINGS)
def test_forcing_below_one_with_each_coin_feeds_some_guesses(forcing, coin, pairs):
    """Past the first token, which has no guess before it.

    The array would try the reference alone otherwise.
    """
    batch = make_batch(*pairs((4, 1, 3), (2, 3, 1)), Padding())
    fed = fed_reference(USUAL | {"teacher_forcing": forcing, "coin": coin}, batch)
    assert (fed is None) == (forcing == "constant_1")
    if fed is not None:
        guesses = ~fed[:, 1:] & batch.target_mask[:, 1:]
        assert guesses.any()
        assert guesses.equal(batch.target_mask[:, 1:]) == (coin == "batch")


@pytest.mark.processor
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.bfloat16 if row["precision"] == "bf16" else ())
        for number, row in enumerate(ROWS)
    ],
)
def test_each_experiment_of_the_array_learns_and_searches(number, tiny_model, pairs):
    row = ROWS[number]
    assert refusal(row) is None
    model, batch = model_and_batch(row, tiny_model, pairs)
    train_one_step(model, batch, row)
    check_hypotheses(search_once(model, batch, row), batch, row)


def compute_loss_and_search(row, tiny_model, pairs):
    model, batch = model_and_batch(row, tiny_model, pairs)
    loss_of(model, batch, row)
    search_once(model, batch, row)


@pytest.mark.parametrize("choices", IMPOSSIBLE, ids=str)
def test_incompatible_choices_are_refused_with_the_predicted_reason(choices, tiny_model, pairs):
    """Where the two are refused by each other, nothing else in the row is wrong.

    Else it takes a third choice.
    """
    spoilt_by_them_alone = filled(choices, set())
    assert (spoilt_by_them_alone is None) == (refusal(choices) is None)
    row = spoilt_by_them_alone or USUAL | choices
    reason = refusal(row)
    assert reason is not None
    with pytest.raises(ExperimentError) as caught:
        compute_loss_and_search(row, tiny_model, pairs)
    (problem,) = caught.value.problems
    assert reason in problem
    assert problem.startswith(("model.", "search.", "training.")) or "score needs" in problem
    assert "choose" in problem


@pytest.mark.parametrize(
    "choices",
    [
        {"bridge": "linear", "layers": 2},
        {"bridge": "first_backward", "decoder_layers": 2},
        {"bridge": "copy", "layers": 2},
    ]
    + [{"bridge": "copy", "decoder_cell": "lstm"}, {"bridge": "copy", "cell": "lstm"}]
    + [{"attention": score, "decoder_hidden_size": 5} for score in EQUAL_WIDTHS]
    + [{"attention": None}],
    ids=str,
)
def test_three_choices_that_do_not_go_together(choices, tiny_model):
    """Pairs of them can be mended by a third choice, so the array has them.

    Without it they are refused.
    """
    reason = refusal(USUAL | choices)
    assert reason is not None
    with pytest.raises(ExperimentError, match=r"choose") as caught:
        tiny_model(**arguments(USUAL | choices))
    assert reason in str(caught.value)
