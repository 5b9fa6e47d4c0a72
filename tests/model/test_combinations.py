"""The full product of score, scope, context, input feeding, history and readout.

Each combination learns, or is refused for the reason that `legal_choices` foretells. None of them
crashes.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from legal_choices import ATTENDING, FEEDINGS, RULES, SCOPES, SCORES, USUAL, arguments, refusal
from one_training_step import train_one_step
from torch.nn.functional import pad

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.location import LocationScore

INNER = {
    "scope": SCOPES,
    "input_feeding": FEEDINGS,
    "history": ["none", "coverage"],  # the others are in the pairwise arrays
    "readout": ["tanh", "attentional"],
}


def rows(score: str, decoder: tuple[str, str]):
    for values in itertools.product(*INNER.values()):
        yield (
            USUAL | {"attention": score, "decoder": decoder} | dict(zip(INNER, values, strict=True))
        )


def test_most_combinations_learn_and_each_reason_of_a_refusal_occurs():
    """The numbers of the next test, which holds each row to its own."""
    outcomes = Counter(
        refusal(row) for score in SCORES for decoder in ATTENDING for row in rows(score, decoder)
    )
    assert outcomes.total() == math.prod(map(len, [SCORES, ATTENDING, *INNER.values()]))
    assert outcomes[None] > outcomes.total() / 2
    expected = {
        "this decoder hands its readout no context",
        "feeding the attentional hidden state needs a readout that makes one",
        "is added to the keys, but the location and uniform scores have none",
    }
    assert expected <= outcomes.keys() <= {None, *(rule.reason for rule in RULES)}


@pytest.mark.long
@pytest.mark.parametrize("decoder", ATTENDING, ids="-".join)
@pytest.mark.parametrize("score", SCORES)
def test_score_and_decoder_learn_or_are_refused_for_the_predicted_reason(
    score, decoder, tiny_model, pairs
):
    batch = make_batch(*pairs(source_lengths=(4, 1, 3), target_lengths=(1, 2, 1)), Padding())
    for row in rows(score, decoder):
        reason = refusal(row)
        if reason is None:
            train_one_step(tiny_model(**arguments(row)), batch, row)
        else:
            with pytest.raises(ExperimentError) as caught:
                tiny_model(**arguments(row))
            (problem,) = caught.value.problems
            assert reason in problem, row


def test_location_score_of_a_source_longer_than_max_length_is_refused(tiny_model, pairs):
    """Counted in real tokens with `<eos>`; pads, masked, may stand beyond."""
    model = tiny_model(attention=Part(LocationScore, "model.attention", max_length=6))
    fits = make_batch(*pairs(source_lengths=(5, 2), target_lengths=(1, 1)), Padding())
    with_pads = {"source": pad(fits.source, (3, 0)), "source_mask": pad(fits.source_mask, (3, 0))}
    padded = model(replace(fits, **with_pads)).reading.readout
    torch.testing.assert_close(padded, model(fits).reading.readout, rtol=0, atol=1e-12)
    too_long = make_batch(*pairs(source_lengths=(6, 2), target_lengths=(1, 1)), Padding())
    message = (
        r"model\.attention\.max_length is 6, but a source of 7 tokens "
        r"\(`<eos>` included\) was met; raise it"
    )
    with pytest.raises(ExperimentError, match=message):
        model(too_long)


def test_sentences_name_both_widths_and_both_states(tiny_model):
    with pytest.raises(
        ExperimentError,
        match=r"the dot score needs .* query has 5 and the encoder's output 8; make",
    ):
        tiny_model(attention="dot", decoder_hidden_size=5)
    with pytest.raises(
        ExperimentError,
        match=r"model\.bridge: .*2 layer\(s\) of hidden and cell .*1 layer.* size 5",
    ):
        tiny_model(
            bridge="copy",
            cell="lstm",
            decoder_cell="gru",
            layers=2,
            decoder_layers=1,
            decoder_hidden_size=5,
        )
    with pytest.raises(
        ExperimentError,
        match=r"model\.tied_embeddings is target, which needs .* they have 7 and 3; make",
    ):
        tiny_model(tied_embeddings="target")
    with pytest.raises(
        ExperimentError,
        match=r"tied_embeddings is all, .* source has 11 tokens of width 6 .* 9 of 3",
    ):
        tiny_model(tied_embeddings="all", readout_size=3)
    with pytest.raises(
        ExperimentError, match=r"model\.decoder: .* model\.attention is BahdanauScore; choose"
    ):
        tiny_model(decoder="no_attention", attention="bahdanau")
