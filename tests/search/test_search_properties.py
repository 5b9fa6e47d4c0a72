"""Properties of every search on every model.

They concern order, lengths, duplicate hypotheses, and batches, which change nothing.
"""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from by_hand import log_prob, written
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.batch import BOS, EOS, PAD, Padding
from attnlab.data.padding import make_batch
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch
from attnlab.search.search import Hypothesis, Search


@st.composite
def searches(draw) -> Search:
    max_length = draw(st.integers(1, 7))
    common = {
        "max_length": max_length,
        "max_length_ratio": draw(st.sampled_from([None, 0.4, 1.0, 2.5])),
        "min_length": draw(st.integers(0, max_length - 1)),
    }
    kind = draw(st.sampled_from(["greedy", "beam", "sample"]))
    if kind == "greedy":
        return GreedySearch(**common)
    if kind == "sample":
        return SampleSearch(
            draw(st.sampled_from([0.3, 1.0, 4.0])),
            draw(st.sampled_from([None, 1, 2, 9])),
            draw(st.sampled_from([None, 0.5, 0.9])),
            seed=draw(st.integers(0, 9)),
            n_best=draw(st.integers(1, 4)),
            **common,
        )
    size = draw(st.integers(1, 9))
    return BeamSearch(
        size,
        draw(st.sampled_from([0.0, 0.6, 1.5])),
        coverage_penalty=draw(st.sampled_from([0.0, 0.2, 3.0])),
        n_best=draw(st.integers(1, size)),
        **common,
    )


sources = st.lists(st.lists(st.integers(4, 9), max_size=5), min_size=1, max_size=4)
models = {
    "seed": st.integers(0, 10_000),
    "vocabulary": st.integers(5, 8),
    "scale": st.sampled_from([0.5, 2.0, 6.0]),
}


@settings(max_examples=150, deadline=None)
@given(search=searches(), sentences=sources, side=st.sampled_from(["pre", "post"]), **models)
def test_hypotheses_are_sorted_within_limits_and_scored_by_the_model(
    bigram, search, sentences, side, seed, vocabulary, scale
):
    model = bigram(seed, vocabulary, scale)
    batch = make_batch(sentences, [[]] * len(sentences), Padding(encoder=side))
    found = search(model, batch.source, batch.source_mask, with_attention=True)
    limits = search.limits(batch.source_mask.sum(1)).tolist()
    assert len(found) == len(sentences)
    for row, (hypotheses, limit) in enumerate(zip(found, limits, strict=True)):
        # 1. Sorted, none twice, not too many.
        scores = [h.score for h in hypotheses]
        assert 1 <= len(hypotheses) <= search.n_best
        assert all(math.isfinite(score) for score in scores)
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(written(h)) for h in hypotheses}) == len(hypotheses)
        for hypothesis in hypotheses:
            # 2. As long as it may be, and written in words alone.
            tokens = written(hypothesis)
            assert not {PAD, BOS, EOS} & set(hypothesis.tokens)
            assert len(tokens) <= limit
            assert len(hypothesis.tokens) >= min(search.min_length, limit)
            assert hypothesis.finished or len(tokens) == limit
            # 3. Its attention belongs to it.
            assert hypothesis.attention_weights.shape == (len(tokens), batch.source.shape[1])
            # 4. Its score is the model's probability of it, where nothing is added.
            if not isinstance(search, BeamSearch) or search.coverage_penalty == 0:
                alpha = search.length_penalty if isinstance(search, BeamSearch) else 0.0
                by_hand = log_prob(
                    model, batch.source[row : row + 1], batch.source_mask[row : row + 1], tokens
                )
                assert hypothesis.score == pytest.approx(
                    by_hand / ((5 + len(tokens)) / 6) ** alpha, abs=1e-3
                )


def same_but_for_ties(hypothesis: Hypothesis) -> tuple[list[tuple[int, int]], bool]:
    """The transitions of a hypothesis, whose order does not count, and whether it has ended.

    The model is a bigram: 1 4 1 1 and 1 1 4 1 have the same probability, and rounding decides
    which of them is found first.
    """
    tokens = [BOS, *written(hypothesis)]
    return sorted(pairwise(tokens)), hypothesis.finished


@settings(max_examples=100, deadline=None)
@given(search=searches(), sentences=sources, side=st.sampled_from(["pre", "post"]), **models)
def test_search_over_a_batch_in_any_order_equals_its_sentences_alone(
    bigram, search, sentences, side, seed, vocabulary, scale
):
    model = bigram(seed, vocabulary, scale)
    together = make_batch(sentences[::-1], [[]] * len(sentences), Padding(encoder=side))
    found = search(model, together.source, together.source_mask)[::-1]
    for sentence, several in zip(sentences, found, strict=True):
        one = make_batch([sentence], [[]], Padding(encoder=side))
        (alone,) = search(model, one.source, one.source_mask)
        assert [same_but_for_ties(h) for h in several] == [same_but_for_ties(h) for h in alone]
        assert [h.score for h in several] == pytest.approx([h.score for h in alone], abs=1e-4)


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 6), sentences=sources, **models)
def test_beam_returns_n_best_sentences(bigram, size, sentences, seed, vocabulary, scale):
    """There are at least 2 sequences of up to 1 word, 4 of up to 2, ...

    With 7 tokens there are more than any beam here holds.
    """
    batch = make_batch(sentences, [[]] * len(sentences), Padding())
    several = BeamSearch(size, 1.0, 7, n_best=size)
    for hypotheses in several(bigram(seed, vocabulary, scale), batch.source, batch.source_mask):
        assert len(hypotheses) == size


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 6), sentences=sources, **models)
def test_shorter_n_best_list_is_the_head_of_the_longer(
    bigram, size, sentences, seed, vocabulary, scale
):
    model = bigram(seed, vocabulary, scale)
    batch = make_batch(sentences, [[]] * len(sentences), Padding())
    lists = [
        BeamSearch(size, 0.6, 6, coverage_penalty=0.2, n_best=n)(
            model, batch.source, batch.source_mask
        )
        for n in (1, size)
    ]
    for head, whole in zip(*lists, strict=True):
        assert head == whole[:1]
