"""The score of Wu et al. 2016, equation 14, against NumPy over every sequence that a tiny model can write."""

from __future__ import annotations

import math

import pytest
import torch
from by_hand import DECODERS, all_sequences, log_prob, written, wu_score

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.errors import ExperimentError
from attnlab.search.beam import BeamSearch, log_coverage
from attnlab.search.search import Search

VOCABULARY, LIMIT = 6, 3  # <unk> and two words: 13 sequences that end, 27 that do not


@pytest.mark.parametrize("decoder", DECODERS[:2])
@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize(("alpha", "beta", "min_length"), [(0.0, 0.3, 0), (1.0, 2.0, 0), (0.6, 0.2, 2)])
def test_beam_as_wide_as_all_sequences_ranks_them_by_the_equation(decoder, side, alpha, beta, min_length, searchable):
    model, source, mask = searchable(
        18, decoder=decoder, target_vocabulary_size=VOCABULARY, padding=Padding(encoder=side)
    )
    sequences = all_sequences(VOCABULARY, LIMIT, min_length)
    search = BeamSearch(
        len(sequences), alpha, LIMIT, coverage_penalty=beta, min_length=min_length, n_best=len(sequences)
    )
    for row, hypotheses in enumerate(search(model, source, mask)):
        one = model, source[row : row + 1], mask[row : row + 1]
        scores = {tuple(tokens): wu_score(*one, tokens, alpha, beta) for tokens in sequences}
        assert {tuple(written(h)): h.score for h in hypotheses} == pytest.approx(scores, abs=1e-4)
        assert hypotheses[0].score == pytest.approx(max(scores.values()), abs=1e-4)


def test_coverage_penalty_changes_the_best_sentence(searchable):
    """Otherwise the test above would prove little of the ranking."""
    model, source, mask = searchable(18, target_vocabulary_size=VOCABULARY)
    best = [
        [tuple(written(h)) for (h,) in BeamSearch(40, 0.0, LIMIT, coverage_penalty=beta)(model, source, mask)]
        for beta in (0.0, 2.0)
    ]
    assert best[0] != best[1]


def test_log_coverage_counts_real_tokens_up_to_a_weight_of_one():
    weights = torch.tensor([[0.5, 0.2, 0.3, 0.0], [0.1, 0.2, 0.7, 0.0]])
    real = torch.tensor([True, True, True, False])
    assert log_coverage(weights, real).item() == pytest.approx(math.log(0.6) + math.log(0.4))  # 0.3 + 0.7 covers
    assert log_coverage(weights[:1], real).item() == pytest.approx(math.log(0.5) + math.log(0.2) + math.log(0.3))
    assert math.isfinite(log_coverage(torch.zeros(2, 3), torch.ones(3, dtype=torch.bool)))


def test_minimum_length_forbids_shorter_sentences_and_changes_no_score(searchable):
    model, source, mask = searchable(16)
    for row, hypotheses in enumerate(BeamSearch(5, 0.0, 7, min_length=3, n_best=5)(model, source, mask)):
        for hypothesis in hypotheses:
            assert len(hypothesis.tokens) >= 3
            by_hand = log_prob(model, source[row : row + 1], mask[row : row + 1], written(hypothesis))
            assert hypothesis.score == pytest.approx(by_hand, abs=1e-4)


def test_coverage_penalty_without_attention_is_refused(searchable):
    search = BeamSearch(2, 0.0, 4, coverage_penalty=0.2)
    assert search.needs_attention == "coverage_penalty"
    with pytest.raises(ExperimentError, match=r"search\.coverage_penalty goes by .* choose a model/attention"):
        search(*searchable(decoder="no_attention"))
    assert BeamSearch(2, 0.0, 4).needs_attention is None
    BeamSearch(2, 0.0, 4)(*searchable(decoder="no_attention"))


@pytest.mark.parametrize(
    ("search", "changed", "said"),
    [
        ("beam.BeamSearch", {"size": 3, "n_best": 4}, "search.n_best must be at most the beam's size"),
        ("beam.BeamSearch", {"size": 3, "min_length": 8}, "search.min_length must be less than max_length"),
        ("greedy.GreedySearch", {"min_length": 8}, "search.min_length must be less than max_length"),
        ("beam.BeamSearch", {"size": 3, "coverage_penalty": -0.1}, "search.coverage_penalty must be "),
        ("sample.SampleSearch", {"temperature": 0.0}, "search.temperature must be "),
        ("sample.SampleSearch", {"top_k": 0}, "search.top_k must be "),
        ("sample.SampleSearch", {"top_p": 1.5}, "search.top_p must be "),
        ("sample.SampleSearch", {"min_length": 8}, "search.min_length must be less than max_length"),
    ],
)
def test_settings_that_are_refused(search, changed, said):
    values = {"max_length": 8}
    if search.startswith("beam"):
        values |= {"length_penalty": 1.0}
    if search.startswith("sample"):
        values |= {"temperature": 1.0, "top_k": None, "top_p": None, "seed": 1}
    with pytest.raises(ExperimentError) as caught:
        bind({"_target_": f"attnlab.search.{search}"} | values | changed, Search, "search")
    (problem,) = caught.value.problems
    assert problem.startswith(said)
