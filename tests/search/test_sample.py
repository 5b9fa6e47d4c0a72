"""Sampling: what is drawn, how often, and that the draws are the seed's alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from by_hand import SEEDS, all_sequences, log_prob, written
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch, draw


def sample(
    max_length: int = 8, temperature: float = 1.0, top_k=None, top_p=None, seed: int = 1, **more
):
    return SampleSearch(temperature, top_k, top_p, seed, max_length, **more)


def drawable(
    probs: np.ndarray, temperature: float, top_k: int | None, top_p: float | None
) -> np.ndarray:
    """Each token's probability to be drawn, step by step.

    Apply the temperature, keep the k likeliest, keep the nucleus.
    """
    tempered = probs.astype(np.float64) ** (1 / temperature)
    tempered /= tempered.sum()
    order = sorted(range(len(probs)), key=lambda token: -tempered[token])
    kept = order if top_k is None else order[:top_k]
    total = sum(tempered[token] for token in kept)
    if top_p is not None:
        nucleus: list[int] = []
        while sum(tempered[token] / total for token in nucleus) < top_p and len(nucleus) < len(
            kept
        ):
            nucleus.append(kept[len(nucleus)])
        kept = nucleus
    chosen = np.zeros(len(probs))
    chosen[kept] = tempered[kept]
    return chosen / chosen.sum()


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    vocabulary=st.integers(2, 9),
    temperature=st.sampled_from([0.2, 0.7, 1.0, 3.0]),
    top_k=st.none() | st.integers(1, 10),
    top_p=st.none() | st.floats(0.05, 0.95),
)
def test_sampling_distribution_equals_its_definition(seed, vocabulary, temperature, top_k, top_p):
    """Over evenly spread numbers each token comes as often as its probability says."""
    probs = np.random.default_rng(seed).dirichlet(np.ones(vocabulary)).astype(np.float32)
    expected = drawable(probs, temperature, top_k, top_p)
    count = 2000
    uniform = (torch.arange(count) + 0.5) / count
    log_probs = torch.from_numpy(probs).log().expand(count, -1)
    drawn = (
        np.bincount(
            draw(log_probs, uniform, temperature, top_k, top_p).numpy(), minlength=vocabulary
        )
        / count
    )
    assert drawn == pytest.approx(expected, abs=1.01 / count)
    assert not drawn[expected == 0].any()


def test_samples_come_as_often_as_the_model_says(bigram):
    vocabulary, limit = 6, 3
    model = bigram(3, vocabulary, scale=1.0)
    sentences = [list(ids) for ids in itertools.product(range(4, 12), repeat=5)][:20_000]
    batch = make_batch(sentences, [[]] * len(sentences), Padding())
    found = sample(limit)(model, batch.source, batch.source_mask)
    counts: dict[tuple[int, ...], int] = {}
    for (hypothesis,) in found:
        counts[tuple(written(hypothesis))] = counts.get(tuple(written(hypothesis)), 0) + 1
    sequences = all_sequences(vocabulary, limit)
    assert counts.keys() <= {tuple(tokens) for tokens in sequences}
    for tokens in sequences:
        p = math.exp(log_prob(model, batch.source[:1], batch.source_mask[:1], tokens))
        deviation = math.sqrt(p * (1 - p) / len(sentences))
        assert counts.get(tuple(tokens), 0) / len(sentences) == pytest.approx(
            p, abs=4.5 * deviation
        )


def test_several_draws_of_one_sentence_are_independent(bigram):
    """The share of sentences whose two draws agree is the sum of the squared probabilities."""
    model = bigram(4, 5, scale=1.0)
    sentences = [list(ids) for ids in itertools.product(range(4, 12), repeat=4)]
    batch = make_batch(sentences, [[]] * len(sentences), Padding())
    found = sample(2, n_best=2)(model, batch.source, batch.source_mask)
    agree = sum(len(several) == 1 for several in found) / len(found)
    probs = [
        math.exp(log_prob(model, batch.source[:1], batch.source_mask[:1], tokens))
        for tokens in all_sequences(5, 2)
    ]
    expected = sum(p**2 for p in probs)
    assert agree == pytest.approx(
        expected, abs=4.5 * math.sqrt(expected * (1 - expected) / len(found))
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limits", [{"top_k": 1}, {"top_p": 0.001}, {"temperature": 0.001}])
def test_sampling_with_top_k_1_equals_greedy(seed, limits, searchable):
    model, source, mask = searchable(seed)
    drawn, greedy = (
        sample(**limits)(model, source, mask, True),
        GreedySearch(8)(model, source, mask, True),
    )
    for (ours,), (theirs,) in zip(drawn, greedy, strict=True):
        assert (ours.tokens, ours.finished) == (theirs.tokens, theirs.finished)
        assert ours.score == pytest.approx(theirs.score, abs=1e-5)
        torch.testing.assert_close(ours.attention_weights, theirs.attention_weights)


def test_sampling_at_high_temperature_is_uniform():
    log_probs = torch.tensor([[-0.1, -3.0, -9.0, -torch.inf]]).log_softmax(-1).expand(900, -1)
    drawn = draw(log_probs, (torch.arange(900) + 0.5) / 900, 1000.0, None, None)
    assert np.bincount(drawn.numpy(), minlength=4).tolist() == pytest.approx(
        [300, 300, 300, 0], abs=4
    )
    assert np.bincount(drawn.numpy(), minlength=4)[3] == 0


def test_impossible_tokens_are_never_drawn():
    log_probs = torch.tensor([[-torch.inf, 0.0, -torch.inf]]).expand(3, -1)
    for temperature, top_k, top_p in itertools.product(
        [0.001, 1.0, 1000.0], [None, 2], [None, 1.0]
    ):
        uniform = torch.tensor([0.0, 0.5, 1 - 2**-24])
        assert draw(log_probs, uniform, temperature, top_k, top_p).tolist() == [1, 1, 1]


def test_samples_depend_on_seed_and_source_only(searchable):
    model, source, mask = searchable(16)
    first = sample(n_best=3)(model, source, mask)
    torch_state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    assert sample(n_best=3)(model, source, mask) == first
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()
    torch.manual_seed(99)
    order = torch.tensor([3, 0, 4, 1, 2])
    shuffled = sample(n_best=3)(model, source[order], mask[order])
    assert [[h.tokens for h in several] for several in shuffled] == [
        [h.tokens for h in first[i]] for i in order
    ]
    others = [sample(n_best=3, seed=seed)(model, source, mask) for seed in (2, 3)]
    assert all(other != first for other in others)
