"""Every pair of choices from all groups: those that go together stand in a few models, which must learn; the others are
refused as foretold."""

from __future__ import annotations

import pytest
from covering_array import covering_array, every_pair, filled, pairs_of
from legal_choices import FACTORS, USUAL, arguments, refusal
from one_training_step import train_one_step

from attnlab.composition.error import ExperimentError
from attnlab.data.padding import make_batch

ROWS, IMPOSSIBLE = covering_array()


def test_the_array_holds_every_pair_that_can_be():
    pairs = {pair for choices in every_pair() for pair in pairs_of(choices)}
    held = {pair for row in ROWS for pair in pairs_of(row)}
    impossible = {pair for choices in IMPOSSIBLE for pair in pairs_of(choices)}
    assert held | impossible == pairs
    assert not held & impossible
    assert all(row.keys() == FACTORS.keys() for row in ROWS)
    assert (len(pairs), len(impossible)) == (2856, 73)
    assert len(ROWS) < 120


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_each_model_of_the_array_learns(number, tiny_model, pairs):
    row = ROWS[number]
    assert refusal(row) is None
    train_one_step(tiny_model(**arguments(row)), make_batch(*pairs((4, 1, 3), (2, 3, 1)), row["padding"]), row)


@pytest.mark.parametrize("choices", IMPOSSIBLE, ids=str)
def test_what_cannot_go_together_is_refused_as_foretold(choices, tiny_model):
    """Where the two are refused by each other, nothing else in the row is wrong; else it takes a third choice."""
    spoilt_by_them_alone = filled(choices, set())
    assert (spoilt_by_them_alone is None) == (refusal(choices) is None)
    row = spoilt_by_them_alone or USUAL | choices
    reason = refusal(row)
    assert reason is not None
    with pytest.raises(ExperimentError) as caught:
        tiny_model(**arguments(row))
    (problem,) = caught.value.problems
    assert reason in problem
    assert problem.startswith("model.") or "score needs" in problem
    assert "choose" in problem


@pytest.mark.parametrize(
    "choices",
    [
        {"bridge": "linear", "layers": 2},
        {"bridge": "first_backward", "decoder_layers": 2},
        {"bridge": "copy", "layers": 2},
    ]
    + [{"bridge": "copy", "decoder_cell": "lstm"}, {"bridge": "copy", "cell": "lstm"}]
    + [{"attention": score, "decoder_hidden_size": 5} for score in ("dot", "scaled_dot", "cosine")]
    + [{"attention": None}],
    ids=str,
)
def test_three_choices_that_do_not_go_together(choices, tiny_model):
    """Pairs of them can be mended by a third choice, so the array has them; without it they are refused."""
    reason = refusal(USUAL | choices)
    assert reason is not None
    with pytest.raises(ExperimentError, match=r"choose") as caught:
        tiny_model(**arguments(USUAL | choices))
    assert reason in str(caught.value)
