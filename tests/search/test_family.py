"""Whatever a model carries from step to step goes with its hypothesis."""

from __future__ import annotations

import pytest
import torch
from by_hand import DECODERS, SEEDS, forced, log_prob, written

from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch

MODELS = {
    **{decoder: {"decoder": decoder} for decoder in DECODERS},
    "attentional hidden fed": {
        "decoder": "step_then_attend",
        "input_feeding": "attentional_hidden",
    },
    "expected embedding fed": {"input_feeding": "expected_embedding"},
    "coverage": {"history": "coverage"},
    "coverage of heads": {"history": "coverage", "heads": 2, "projection": 4},
    "context of the last step": {
        "decoder": "step_then_attend",
        "context": "readout_and_previous_in_cell",
    },
    "window that moves": {"scope": "local_m"},
    "window that is predicted": {"scope": "local_p"},
    "all of a step after": {
        "decoder": "step_then_attend",
        "context": "readout_and_previous_in_cell",
        "history": "coverage",
    }
    | {"input_feeding": "attentional_hidden", "scope": "local_m"},
    "all of a step before": {
        "input_feeding": "expected_embedding",
        "history": "coverage",
        "heads": 2,
        "scope": "local_p",
    },
    "sparse windows": {
        "attention": "location",
        "normaliser": "sparsemax",
        "scope": "local_p_renormalised",
    },
    "weights of 0": {"normaliser": "sparsemax"},
    "location": {"attention": "location"},
    "context at every step": {"decoder": "no_attention", "context": "every_step"},
    "maxout": {"readout": "maxout"},
    "source reversed": {"reverse_source": True},
}


every_model = pytest.mark.parametrize("choices", MODELS.values(), ids=MODELS)


@pytest.mark.parametrize(
    "search",
    [
        BeamSearch(4, 0.0, 8, n_best=4),
        BeamSearch(4, 0.0, 8, min_length=4, n_best=4),
        SampleSearch(1.0, None, None, 1, 8, min_length=4, n_best=3),
    ],
    ids=["beam", "long beam", "sample"],
)
@every_model
def test_each_hypothesis_has_the_models_score_and_attention(search, choices, searchable):
    model, source, mask = searchable(18, **choices)
    for row, hypotheses in enumerate(search(model, source, mask, with_attention=True)):
        one = source[row : row + 1], mask[row : row + 1]
        for hypothesis in hypotheses:
            assert hypothesis.score == pytest.approx(
                log_prob(model, *one, written(hypothesis)), abs=1e-4
            )
            _, weights = forced(model, *one, written(hypothesis))
            if weights is None:
                assert hypothesis.attention_weights is None
            else:
                torch.testing.assert_close(
                    hypothesis.attention_weights, weights.float(), rtol=0, atol=1e-6
                )


@pytest.mark.parametrize(
    "choices", [{"scope": "local_m"}, {"normaliser": "sparsemax"}], ids=["local-m", "sparsemax"]
)
def test_coverage_penalty_is_finite_where_weights_are_zero(choices, searchable):
    """A source token that no weight fell on costs much, and no score becomes infinite."""
    model, source, mask = searchable(18, **choices)
    search = BeamSearch(4, 0.0, 5, coverage_penalty=0.5, n_best=4)
    scores = [h.score for hypotheses in search(model, source, mask) for h in hypotheses]
    assert all(-1e4 < score < 0 for score in scores)
    assert min(scores) < -0.5 * 80


@every_model
def test_beam_one_is_greedy(choices, searchable):
    """Each sentence has a limit of its own, so that rows leave the batch one by one."""
    numbers = []
    for seed in SEEDS:
        given = searchable(seed, **choices)
        greedy, beam = (
            search(*given, True) for search in (GreedySearch(8, 1.0), BeamSearch(1, 0.0, 8, 1.0))
        )
        for (ours,), (theirs,) in zip(beam, greedy, strict=True):
            assert (ours.tokens, ours.finished) == (theirs.tokens, theirs.finished)
            assert ours.score == pytest.approx(theirs.score, abs=1e-5)
            torch.testing.assert_close(
                ours.attention_weights, theirs.attention_weights, rtol=0, atol=1e-6
            )
        numbers.append(len({len(ours.tokens) for (ours,) in greedy}))
    assert max(numbers) > 2
