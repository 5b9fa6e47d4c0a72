"""Alignment error rate and quality by length, against counts done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from attnlab.evaluation.alignment_error_rate import AlignmentErrorRate
from attnlab.evaluation.by_length import by_length, length_buckets


def test_perfect_alignment_has_no_error() -> None:
    rate = AlignmentErrorRate()
    rate.update(np.eye(4)[[2, 0, 1, 3]], [[0, 2], [1, 0], [2, 1]], [[0, 2], [1, 0], [2, 1]])
    assert rate.compute() == 0


def test_the_formula_over_two_sentences() -> None:
    rate = AlignmentErrorRate()
    # Target 0 -> source 1 (sure), 1 -> 0 (possible only), 2 -> 2 (wrong); target 3 has no link.
    weights = [[0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.0, 0.3, 0.7], [1, 0, 0]]
    rate.update(weights, [[0, 1], [2, 0]], [[0, 1], [2, 0], [1, 0], [1, 2]])
    assert rate.compute() == pytest.approx(1 - (1 + 2) / (3 + 2))
    rate.update(np.eye(2), [[0, 0]], [[0, 0]])
    assert rate.compute() == pytest.approx(1 - (2 + 3) / (4 + 3))


def test_sure_counts_as_possible_and_doubles_count_once() -> None:
    rate = AlignmentErrorRate()
    rate.update(np.eye(2), [[0, 0], [0, 0]], np.zeros((0, 2)))
    assert rate.compute() == 0


def test_end_of_sentence_column_is_a_wrong_link() -> None:
    rate = AlignmentErrorRate()
    rate.update([[0.2, 0.8]], [[0, 0]], [[0, 0]])
    assert rate.compute() == 1


def test_no_links_no_rate_and_links_outside_are_refused() -> None:
    rate = AlignmentErrorRate()
    rate.update(np.eye(2), [], [])
    assert rate.compute() is None
    for outside in ([[0, 2]], [[2, 0]], [[-1, 0]], [[0, -1]], [[0, 0], [1, 2]]):
        with pytest.raises(ValueError, match="sure links must lie inside the 2 target and 2 source positions"):
            rate.update(np.eye(2), outside, [])
        with pytest.raises(ValueError, match="possible links must lie inside the 2 target and 2 source positions"):
            rate.update(np.eye(2), [], outside)


@pytest.mark.parametrize("weights", [[0.5, 0.5], [[[1.0]]], [[np.nan, 1.0]], [[np.inf, 0.0]]])
def test_alignment_error_rate_refuses_weights_that_are_no_finite_matrix(weights: list[object]) -> None:
    with pytest.raises(ValueError, match=r"finite matrix \(T, S\)"):
        AlignmentErrorRate().update(weights, [], [])


def test_the_first_of_equals_is_linked_and_sentences_can_be_forgotten() -> None:
    rate = AlignmentErrorRate()
    rate.update([[0.5, 0.5], [0.0, 1.0]], [[0, 0], [1, 1]], [])
    assert rate.compute() == 0
    rate.update([[0.5, 0.5]], [[0, 1]], [])
    assert rate.compute() == pytest.approx(1 - (2 + 2) / (3 + 3))
    rate.reset()
    assert rate.compute() is None


def test_a_matrix_that_is_not_square_has_its_links_where_they_are() -> None:
    rate = AlignmentErrorRate()
    weights = np.zeros((2, 5))
    weights[0, 3] = weights[1, 2] = 1
    rate.update(weights, [[0, 3], [1, 2]], [])
    rate.update(np.zeros((3, 0)), [], [])  # a source without tokens
    assert rate.compute() == 0


@pytest.mark.parametrize(
    "lengths",
    [
        [7] * 5,
        list(range(1, 101)),
        [1],
        [3] * 300 + [900],
        list(range(8, 43)),
        [0, 1, 2],
        list(range(1, 30000, 7)),
    ],
)
def test_buckets_hold_every_sentence_once(lengths: list[int]) -> None:
    buckets = length_buckets(lengths)
    assert len(buckets) <= 11
    assert sum(a <= length <= b for length in lengths for a, b in buckets) == len(lengths)
    assert length_buckets([]) == []


def test_buckets_are_round() -> None:
    assert length_buckets(range(1, 101)) == [(10 * n + 1, 10 * n + 10) for n in range(10)]


@pytest.mark.parametrize(
    ("lengths", "buckets"),
    [
        ([7] * 5, [(7, 7)]),
        (range(1, 11), [(n, n) for n in range(1, 11)]),  # ten ranges are not too many, eleven are
        (range(1, 12), [(n, n + 1) for n in range(1, 12, 2)]),
        (range(8, 43), [(n, n + 4) for n in range(6, 42, 5)]),  # 8 lies in 6-10, not at the start of a range
        ([5, 10, 11, 31], [(1, 5), (6, 10), (11, 15), (31, 35)]),  # 16-20, ... have no sentence
        ([3] * 300 + [900], [(3, 900)]),  # one in 301 is longer: it goes to the last range
        ([4] * 99 + [40], [(1, 5), (36, 40)]),  # one in a hundred counts
        ([0, 1, 2], [(0, 0), (1, 1), (2, 2)]),
        ([1, 10_000], [(1, 1000), (9001, 10_000)]),
        ([1, 10_001], [(1, 1001), (9010, 10_010)]),  # no round width is wide enough
    ],
)
def test_buckets_by_hand(lengths: list[int], buckets: list[tuple[int, int]]) -> None:
    assert length_buckets(lengths) == buckets


def test_fewer_buckets_are_wider() -> None:
    assert length_buckets(range(1, 101), most=4) == [(1, 25), (26, 50), (51, 75), (76, 100)]


def test_bleu_by_length_is_the_buckets_corpus_bleu() -> None:
    references = ["the cat sat on the mat", "a dog barked at the man", "yes", "no"] * 3
    hypotheses = ["the cat sat on a mat", "a dog barked at the man", "yes", "well"] * 3
    lengths = [6, 26, 1, 1] * 3
    table = by_length(lengths, hypotheses, references, "13a")
    assert [row["sentences"] for row in table] == [6, 3, 3]
    for row, chosen in zip(table, ([2, 3, 6, 7, 10, 11], [0, 4, 8], [1, 5, 9]), strict=True):
        expected = BLEU(smooth_method="none").corpus_score(
            [hypotheses[i] for i in chosen], [[references[i] for i in chosen]]
        )
        assert row["bleu"] == pytest.approx(expected.score, abs=1e-4)
    assert [row["exact_match"] for row in table] == [0.5, 0.0, 1.0]


@pytest.mark.parametrize("tokenize", ["13a", "char", "none"])
def test_bleu_by_length_is_counted_in_the_tokens_asked_for(tokenize: str) -> None:
    hypothesis, reference = "the cat, which sat there, slept", "the cat, which sat here, slept"
    (row,) = by_length([6], [hypothesis], [reference], tokenize)
    expected = BLEU(tokenize=tokenize, smooth_method="none").corpus_score([hypothesis], [[reference]])
    assert row["bleu"] == pytest.approx(expected.score, abs=1e-4)


def test_space_at_the_end_counts_for_the_exact_match_alone() -> None:
    (row,) = by_length([4], ["a b c d "], ["a b c d"], "13a")
    assert (row["bleu"], row["exact_match"]) == (pytest.approx(100.0), 0.0)
    (row,) = by_length([4], ["a b c d"], ["a b c d\n"], "char")
    assert (row["bleu"], row["exact_match"]) == (pytest.approx(100.0), 0.0)


@pytest.mark.parametrize("sizes", [(1, 2, 2), (2, 1, 2), (2, 2, 1)])
def test_lists_of_different_lengths_are_refused(sizes: tuple[int, int, int]) -> None:
    lengths, hypotheses, references = sizes
    with pytest.raises(ValueError, match=f"{lengths} lengths, {hypotheses} hypotheses and {references} references"):
        by_length([4] * lengths, ["a"] * hypotheses, ["a"] * references, "13a")


def test_ranges_can_be_given() -> None:
    texts = ["a b c d", "a b c d e", "a b c d f"]
    table = by_length([4, 5, 5], ["a b c d", "a b c d e", "x"], texts, "none", [(4, 4), (5, 5)])
    assert [(row["from"], row["to"], row["sentences"], row["exact_match"]) for row in table] == [
        (4, 4, 1, 1.0),
        (5, 5, 2, 0.5),
    ]
