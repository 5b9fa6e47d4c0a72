"""The score of Wu et al. 2016, equation 14, against NumPy.

It is compared over every sequence that a tiny model can write.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from by_hand import DECODERS, all_sequences, written, wu_score

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.errors import ExperimentError
from attnlab.search.beam import BeamSearch, log_coverage
from attnlab.search.search import Search

VOCABULARY, LIMIT = 6, 3  # <unk> and two words: 13 sequences that end, 27 that do not


@pytest.mark.parametrize(
    ("decoder", "alpha", "beta", "min_length"),
    [
        *itertools.product(DECODERS, [0.0, 1.0], [0.0], [0]),
        *(
            (decoder, *choices)
            for decoder in DECODERS[:2]
            for choices in [(0.0, 0.3, 0), (1.0, 2.0, 0), (0.6, 0.2, 2)]
        ),
    ],
)
@pytest.mark.parametrize("side", ["pre", "post"])
def test_beam_as_wide_as_all_sequences_ranks_them_by_the_equation(
    decoder, side, alpha, beta, min_length, searchable
):
    model, source, mask = searchable(
        18, decoder=decoder, target_vocabulary_size=VOCABULARY, padding=Padding(encoder=side)
    )
    sequences = all_sequences(VOCABULARY, LIMIT, min_length)
    search = BeamSearch(
        len(sequences),
        alpha,
        LIMIT,
        coverage_penalty=beta,
        min_length=min_length,
        n_best=len(sequences),
    )
    for row, hypotheses in enumerate(search(model, source, mask)):
        one = model, source[row : row + 1], mask[row : row + 1]
        scores = {tuple(tokens): wu_score(*one, tokens, alpha, beta) for tokens in sequences}
        assert {tuple(written(h)): h.score for h in hypotheses} == pytest.approx(scores, abs=1e-4)
        assert hypotheses[0].score == pytest.approx(max(scores.values()), abs=1e-4)
        if alpha == beta == min_length == 0:
            assert len(scores) == 40
            assert sum(map(math.exp, scores.values())) == pytest.approx(1.0, abs=1e-4)


def test_coverage_penalty_changes_the_best_sentence(searchable):
    """Otherwise the test above would prove little of the ranking."""
    model, source, mask = searchable(18, target_vocabulary_size=VOCABULARY)
    best = [
        [
            tuple(written(h))
            for (h,) in BeamSearch(40, 0.0, LIMIT, coverage_penalty=beta)(model, source, mask)
        ]
        for beta in (0.0, 2.0)
    ]
    assert best[0] != best[1]


def test_log_coverage_counts_real_tokens_up_to_a_weight_of_one():
    weights = torch.tensor([[0.5, 0.2, 0.3, 0.0], [0.1, 0.2, 0.7, 0.0]])
    real = torch.tensor([True, True, True, False])
    # 0.3 + 0.7 covers
    assert log_coverage(weights, real).item() == pytest.approx(math.log(0.6) + math.log(0.4))
    assert log_coverage(weights[:1], real).item() == pytest.approx(
        math.log(0.5) + math.log(0.2) + math.log(0.3)
    )
    assert math.isfinite(log_coverage(torch.zeros(2, 3), torch.ones(3, dtype=torch.bool)))


def test_coverage_penalty_without_attention_is_refused(searchable):
    search = BeamSearch(2, 0.0, 4, coverage_penalty=0.2, replace_unknown=True)
    assert search.needs_attention == "coverage_penalty"
    with pytest.raises(
        ExperimentError, match=r"search\.coverage_penalty goes by .* choose a model/attention"
    ):
        search(*searchable(decoder="no_attention"))
    assert BeamSearch(2, 0.0, 4).needs_attention is None
    BeamSearch(2, 0.0, 4)(*searchable(decoder="no_attention"))


MIN_LENGTH = "search.min_length must be less than max_length, which counts <eos> and is 8, got 8"


@pytest.mark.parametrize(
    ("search", "changed", "said"),
    [
        (
            "beam.BeamSearch",
            {"n_best": 4},
            "search.n_best must be at most the beam's size, which is 3, got 4",
        ),
        ("beam.BeamSearch", {"min_length": 8}, MIN_LENGTH),
        ("greedy.GreedySearch", {"min_length": 8}, MIN_LENGTH),
        ("beam.BeamSearch", {"coverage_penalty": -0.1}, "search.coverage_penalty must be "),
        ("sample.SampleSearch", {"temperature": 0.0}, "search.temperature must be "),
        ("sample.SampleSearch", {"top_k": 0}, "search.top_k must be "),
        ("sample.SampleSearch", {"top_p": 1.5}, "search.top_p must be "),
        ("sample.SampleSearch", {"min_length": 8}, MIN_LENGTH),
    ],
)
def test_settings_that_are_refused(search, changed, said):
    values = {"max_length": 8, "min_length": 7}
    if search.startswith("beam"):
        values |= {"length_penalty": 1.0, "size": 3, "n_best": 3}
    if search.startswith("sample"):
        values |= {"temperature": 1.0, "top_k": None, "top_p": None, "seed": 1}
    node = {"_target_": f"attnlab.search.{search}"} | values
    bind(node, Search, "search")
    with pytest.raises(ExperimentError) as caught:
        bind(node | changed, Search, "search")
    (problem,) = caught.value.problems
    assert problem.startswith(said)
