"""Searches against plain definitions: the argmax loop, all sequences, one sentence at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from by_hand import DECODERS, SEEDS, forced, log_prob, written

from attnlab.batch import BOS, EOS, PAD, Padding
from attnlab.errors import ExperimentError
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.sample import SampleSearch
from attnlab.search.search import BLOCK, next_log_probs, topk_by_blocks

SEARCHES = {
    "greedy": partial(GreedySearch, max_length=4),
    "beam": partial(BeamSearch, size=2, length_penalty=1.0, max_length=4),
    "sample": partial(SampleSearch, temperature=1.0, top_k=None, top_p=None, seed=1, max_length=4),
}
every_decoder = pytest.mark.parametrize("decoder", DECODERS)


@every_decoder
@pytest.mark.parametrize("seed", SEEDS)
def test_greedy_is_the_argmax_loop(decoder, seed, searchable):
    model, source, mask = searchable(seed, decoder=decoder)
    found = GreedySearch(8)(model, source, mask, with_attention=True)
    assert len(found) == len(source)
    for row, (best,) in enumerate(found):
        tokens: list[int] = []
        while len(tokens) < 8 and EOS not in tokens:
            rows, _ = forced(model, source[row : row + 1], mask[row : row + 1], [*tokens, EOS])
            tokens.append(int(rows[-1].argmax()))
        assert written(best) == tokens
        assert best.finished == (EOS in tokens)
        assert best.score == pytest.approx(
            log_prob(model, source[row : row + 1], mask[row : row + 1], tokens), abs=1e-4
        )
        if decoder == "no_attention":
            assert best.attention_weights is None
        else:
            assert best.attention_weights.shape == (len(tokens), source.shape[1])


def test_search_models_end_sentences_early_and_late(searchable):
    """Otherwise the tests here would prove little."""
    ends = {
        (best.finished, len(best.tokens))
        for seed in SEEDS
        for decoder in DECODERS
        for (best,) in GreedySearch(8)(*searchable(seed, decoder=decoder))
    }
    assert {finished for finished, _ in ends} == {True, False}
    assert len(ends) >= 6


@pytest.mark.parametrize(
    "search",
    [
        GreedySearch(8),
        BeamSearch(3, 1.0, 8, n_best=3),
        BeamSearch(4, 0.6, 8, 1.5, n_best=4),
        BeamSearch(4, 0.6, 8, coverage_penalty=0.5, min_length=2, n_best=3),
        SampleSearch(1.0, None, None, 1, 8, n_best=3),
    ],
    ids=["greedy", "beam", "ratio", "coverage", "sample"],
)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("side", ["pre", "post"])
def test_search_over_a_batch_equals_its_sentences_one_by_one(search, seed, side, searchable):
    model, source, mask = searchable(seed, padding=Padding(encoder=side))
    together = search(model, source, mask, with_attention=True)
    for row, several in enumerate(together):
        words = source[row][mask[row]].unsqueeze(0)
        (alone,) = search(
            model, words, torch.ones_like(words, dtype=torch.bool), with_attention=True
        )
        assert [(h.tokens, h.finished) for h in several] == [(h.tokens, h.finished) for h in alone]
        for ours, theirs in zip(several, alone, strict=True):
            assert ours.score == pytest.approx(theirs.score, abs=1e-5)
            torch.testing.assert_close(
                ours.attention_weights[:, mask[row]], theirs.attention_weights, rtol=0, atol=1e-6
            )
            assert (ours.attention_weights[:, ~mask[row]] == 0).all()


def beam_of_one_sentence(
    model, source, mask, size: int, alpha: float, limit: int
) -> list[tuple[float, list[int]]]:
    """A plain beam search, step by step.

    Grow all, look at the best 2K, set the finished ones of the best K aside, keep K, until none of
    these beats the worst of the best K that are finished.
    """

    def score(log_prob: float, length: int) -> float:
        return log_prob / ((5 + length) / 6) ** alpha

    beams, found = [(0.0, [])], []
    for _ in range(limit):
        grown = []
        for total, tokens in beams:
            rows, _ = forced(model, source, mask, [*tokens, EOS])
            grown += [
                (total + rows[-1][token].item(), [*tokens, token]) for token in range(rows.shape[1])
            ]
        grown = sorted((g for g in grown if g[0] > -math.inf), key=lambda g: -g[0])[: 2 * size]
        found += [g for g in grown[:size] if g[1][-1] == EOS]
        beams = [g for g in grown if g[1][-1] != EOS][:size]
        finished = sorted((score(total, len(tokens)) for total, tokens in found), reverse=True)
        partial = [score(total, len(tokens)) for total, tokens in beams]
        if len(found) >= size and max(partial, default=-math.inf) <= finished[size - 1]:
            break
    else:
        found += beams[: max(size - len(found), 0)]
    scored = [(score(total, len(tokens)), tokens) for total, tokens in found]
    return sorted(scored, key=lambda s: -s[0])[:size]


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_narrow_beam_equals_a_plain_implementation(size, alpha, seed, searchable):
    model, source, mask = searchable(seed)
    found = BeamSearch(size, alpha, 6, n_best=size)(model, source, mask)
    for row, hypotheses in enumerate(found):
        expected = beam_of_one_sentence(
            model, source[row : row + 1], mask[row : row + 1], size, alpha, 6
        )
        assert [written(h) for h in hypotheses] == [tokens for _, tokens in expected]
        for hypothesis, (score, _) in zip(hypotheses, expected, strict=True):
            assert hypothesis.score == pytest.approx(score, abs=1e-4)


class EndsPoorly:
    """Writes words, token 5, each with `<eos>` as an unlikely alternative, and then ends."""

    def __init__(self, words: int) -> None:
        self.words = words

    def encode(self, source, source_mask):
        none = torch.zeros(len(source))
        return _Written(none), _Written(none)

    def step(self, tokens, state, memory):
        probabilities = torch.full((len(tokens), 7), 1e-4)
        probabilities[:, 5] = 0.9
        probabilities[:, EOS] = 0.02
        is_whole = state.written >= self.words
        probabilities[is_whole, 5] = 1e-4
        probabilities[is_whole, EOS] = 0.99
        return probabilities.log(), _Written(state.written + 1), None


@dataclass(frozen=True)
class _Written:
    written: torch.Tensor  # (B,), how many tokens each row has

    def select(self, rows):
        return _Written(self.written[rows])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_beam_goes_on_while_a_partial_hypothesis_is_ahead(alpha):
    source = torch.ones(1, 4, dtype=torch.long)
    search = BeamSearch(3, alpha, max_length=20, n_best=3)
    (found,) = search(EndsPoorly(words=8), source, source.bool())
    assert found[0].tokens == [5] * 8
    assert all(len(hypothesis.tokens) < 8 for hypothesis in found[1:])


@pytest.mark.parametrize(
    "search", [GreedySearch(4), BeamSearch(3, 1.0, 4, n_best=3)], ids=["greedy", "beam"]
)
def test_sentence_may_end_at_the_first_step(search, searchable):
    model, source, mask = searchable()
    with torch.no_grad():
        model.output.bias[EOS] = 100
    for hypotheses in search(model, source, mask, True):
        assert hypotheses[0].tokens == []
        assert hypotheses[0].finished
        assert hypotheses[0].attention_weights.shape == (1, source.shape[1])


def test_attention_only_on_demand(searchable):
    for search in (
        GreedySearch(4),
        BeamSearch(2, 1.0, 4),
        BeamSearch(2, 1.0, 4, coverage_penalty=0.2),
    ):
        assert all(
            h.attention_weights is None for several in search(*searchable()) for h in several
        )


def test_length_limits_obey_maximum_ratio_and_minimum():
    lengths = torch.tensor([6, 3, 1])
    assert GreedySearch(10).limits(lengths).tolist() == [10, 10, 10]
    assert GreedySearch(10, 1.5).limits(lengths).tolist() == [9, 5, 2]
    assert GreedySearch(4, 1.5).limits(lengths).tolist() == [4, 4, 2]
    assert GreedySearch(10, 0.01).limits(lengths).tolist() == [1, 1, 1]
    assert GreedySearch(10, 1.5, min_length=4).limits(lengths).tolist() == [9, 5, 5]


@pytest.mark.parametrize("make", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_each_sentence_that_would_go_on_is_cut_off_at_its_own_limit(ratio, make, searchable):
    model, source, mask = searchable()
    with torch.no_grad():
        model.output.bias[EOS] = -1e4
    search = make(max_length=20, max_length_ratio=ratio)
    for length, hypotheses in zip(
        mask.sum(1).tolist(), search(model, source, mask, True), strict=True
    ):
        for hypothesis in hypotheses:
            assert not hypothesis.finished
            assert (
                len(hypothesis.tokens)
                == len(hypothesis.attention_weights)
                == math.ceil(ratio * length)
            )


def test_search_leaves_no_graph_and_no_change_behind(searchable):
    model, source, mask = searchable()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for search in (GreedySearch(4), BeamSearch(2, 1.0, 4)):
        assert not search(model, source, mask, True)[0][0].attention_weights.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_impossible_tokens_have_no_probability():
    log_probs = next_log_probs(torch.tensor([[9.0, 1.0, 9.0, 0.0, 2.0]]))
    assert log_probs[0, PAD] == log_probs[0, BOS] == -math.inf
    assert log_probs.exp().sum() == pytest.approx(1.0)


@pytest.mark.parametrize("columns", [3, BLOCK, 11 * BLOCK, 11 * BLOCK + 1, 40 * BLOCK - 1])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("impossible", [0.0, 0.5, 0.999])
def test_topk_by_blocks_equals_topk(columns, count, impossible):
    generator = torch.Generator().manual_seed(columns)
    scores = torch.randperm(6 * columns, generator=generator).view(6, columns).float()
    scores = scores.masked_fill(torch.rand(6, columns, generator=generator) < impossible, -math.inf)
    expected, _ = scores.topk(count, dim=1)
    values, places = topk_by_blocks(scores, count)
    assert torch.equal(values, expected)
    assert torch.equal(scores.gather(1, places), expected)
    assert all(len(set(row)) == count for row in places.tolist())


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_topk_by_blocks_equals_topk_in_a_vocabulary_of_many_blocks(seed, searchable):
    model, source, mask = searchable(seed, target_vocabulary_size=12 * BLOCK + 5)
    found = BeamSearch(3, 0.7, 5, n_best=3)(model, source, mask)
    for row, hypotheses in enumerate(found):
        expected = beam_of_one_sentence(
            model, source[row : row + 1], mask[row : row + 1], 3, 0.7, 5
        )
        assert [written(h) for h in hypotheses] == [tokens for _, tokens in expected]
    for (greedy,), (beam,) in zip(
        GreedySearch(5)(model, source, mask),
        BeamSearch(1, 0.0, 5)(model, source, mask),
        strict=True,
    ):
        assert greedy.tokens == beam.tokens


@pytest.mark.parametrize("make", SEARCHES.values(), ids=SEARCHES)
def test_search_reports_which_setting_needs_attention(make):
    """By default it is asked for none of it, and gives back one hypothesis."""
    search = make()
    assert (search.n_best, search.replace_unknown, search.needs_attention) == (1, False, None)
    assert make(replace_unknown=True).needs_attention == "replace_unknown"


@every_decoder
@pytest.mark.parametrize(
    "search", [GreedySearch(8), BeamSearch(3, 0.0, 8), SampleSearch(1.0, None, None, 1, 8)]
)
def test_forced_token_is_written_with_the_score_that_the_model_gives_it(
    decoder, search, searchable
):
    model, source, mask = searchable(18, decoder=decoder)
    for row, (best, *_) in enumerate(search(model, source, mask, forced={0: 5, 1: 6})):
        assert best.tokens[:2] == [5, 6]
        assert best.score == pytest.approx(
            log_prob(model, source[row : row + 1], mask[row : row + 1], written(best)), abs=1e-4
        )


def test_forced_end_ends_every_hypothesis(searchable):
    model, source, mask = searchable(18)
    for search in (GreedySearch(8, min_length=4), BeamSearch(3, 0.0, 8)):
        for (best,) in search(model, source, mask, forced={1: EOS}):
            assert best.finished
            assert len(best.tokens) <= 1


def test_beam_of_a_diverged_model_says_so(searchable):
    model, source, mask = searchable(SEEDS[0])
    for parameter in model.output.parameters():
        torch.nn.init.constant_(parameter, math.nan)
    with pytest.raises(ExperimentError, match="the model's scores are no numbers"):
        BeamSearch(size=2, length_penalty=1.0, max_length=4)(model, source, mask)
