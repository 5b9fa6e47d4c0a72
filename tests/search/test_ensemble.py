"""An ensemble writes what the mean of its members' probabilities says."""

from __future__ import annotations

import pytest
import torch
from by_hand import all_sequences, forced, log_prob, written

from attnlab.batch import BOS, EOS, PAD
from attnlab.search.beam import BeamSearch
from attnlab.search.ensemble import Ensemble
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch

SEARCHES = [
    GreedySearch(8),
    BeamSearch(4, 1.0, 8, coverage_penalty=0.2, n_best=4),
    SampleSearch(1.0, None, None, 1, 8, n_best=2),
]
every_search = pytest.mark.parametrize("search", SEARCHES, ids=["greedy", "beam", "sample"])


@every_search
@pytest.mark.parametrize("count", [1, 2])
def test_ensemble_of_a_model_with_itself_equals_the_model(search, count, searchable):
    model, source, mask = searchable()
    single = search(model, source, mask, True)
    ensemble = search(Ensemble([model] * count), source, mask, True)
    for ours, theirs in zip(ensemble, single, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-5)
            torch.testing.assert_close(
                one.attention_weights, other.attention_weights, rtol=0, atol=1e-6
            )


@pytest.fixture
def trio(searchable):
    """An LSTM and a GRU that attend, a tanh RNN that does not; a batch."""
    first, source, mask = searchable(20)
    second, *_ = searchable(18, cell="gru", layers=1, decoder="step_then_attend")
    third, *_ = searchable(16, cell="rnn", decoder="no_attention")
    return [first, second, third], source, mask


def test_ensemble_step_is_the_mean_of_its_members(trio):
    models, source, mask = trio
    tokens = [4, 5, 1, EOS]
    for row in range(len(source)):
        one = source[row : row + 1], mask[row : row + 1]
        members = [forced(model, *one, tokens) for model in models]
        log_probs, weights = forced(Ensemble(models), *one, tokens)
        mean = torch.stack([rows.exp() for rows, _ in members]).mean(0)
        torch.testing.assert_close(log_probs.exp(), mean, rtol=0, atol=1e-6)
        assert (log_probs[:, [PAD, BOS]] == -torch.inf).all()
        torch.testing.assert_close(weights, (members[0][1] + members[1][1]) / 2, rtol=0, atol=1e-6)


def test_without_any_attention_there_are_no_weights(searchable):
    model, source, mask = searchable(decoder="no_attention")
    assert forced(Ensemble([model, model]), source[:1], mask[:1], [4, EOS])[1] is None


@every_search
def test_members_of_different_kinds_search_together(search, trio):
    models, source, mask = trio
    ensemble = Ensemble(models)
    for row, hypotheses in enumerate(search(ensemble, source, mask)):
        (alone,) = search(
            ensemble, source[row : row + 1][:, mask[row]], mask[row : row + 1][:, mask[row]]
        )
        assert [h.tokens for h in alone] == [h.tokens for h in hypotheses]
        if not isinstance(search, BeamSearch):
            for hypothesis in hypotheses:
                by_hand = log_prob(
                    ensemble, source[row : row + 1], mask[row : row + 1], written(hypothesis)
                )
                assert hypothesis.score == pytest.approx(by_hand, abs=1e-4)


def test_ensemble_finds_the_best_sequence_by_averaged_probabilities(searchable):
    vocabulary, limit = 6, 3
    models = [searchable(seed, target_vocabulary_size=vocabulary)[0] for seed in (16, 18)]
    _, source, mask = searchable(18)
    sequences = all_sequences(vocabulary, limit)
    found = BeamSearch(len(sequences), 0.0, limit)(Ensemble(models), source, mask)
    different = 0
    for row, (best,) in enumerate(found):
        one = source[row : row + 1], mask[row : row + 1]
        scores = {}
        for tokens in sequences:
            rows = torch.stack([forced(model, *one, tokens)[0].exp() for model in models]).mean(0)
            scores[tuple(tokens)] = sum(
                p[token].log().item() for p, token in zip(rows, tokens, strict=True)
            )
        assert tuple(written(best)) == max(scores, key=scores.__getitem__)
        assert best.score == pytest.approx(max(scores.values()), abs=1e-4)
        different += best.tokens != BeamSearch(40, 0.0, limit)(models[0], *one)[0][0].tokens
    assert different  # or the second model had no say
