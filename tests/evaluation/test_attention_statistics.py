"""Attention statistics against loops written from their formulas; pads move none of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from attnlab.evaluation.attention_statistics import AttentionStatistics


def by_hand(sentences: list[NDArray[np.float64]]) -> dict[str, float]:
    """The statistics of sentences without pads, (T, S) each, a token at a time."""
    entropy, covered, central = [], [], []
    for weights in sentences:
        length_t, length_s = weights.shape
        shares = weights / weights.sum(1, keepdims=True)
        for s in range(length_s):
            covered.append(min(1.0, sum(shares[t][s] for t in range(length_t))))
        for t in range(length_t):
            entropy.append(-sum(a * math.log(a) for a in shares[t] if a > 0))
            if length_s > 1 and length_t > 1:
                off = [abs(t / (length_t - 1) - s / (length_s - 1)) for s in range(length_s)]
                central.append(
                    1 - sum(a * d for a, d in zip(shares[t], off, strict=True)) / max(off)
                )
    return named(*(float(np.mean(values)) for values in (entropy, covered, central)), 0.0)


def named(entropy: float, coverage: float, diagonality: float, pad_mass: float) -> dict[str, float]:
    return {
        "attention_entropy": entropy,
        "attention_coverage": coverage,
        "attention_diagonality": diagonality,
        "attention_pad_mass": pad_mass,
    }


def drawn(lengths: list[tuple[int, int]], sums: float = 1.0) -> list[NDArray[np.float64]]:
    """Peaked rows over the source for sentences of (T, S) tokens."""
    random = np.random.default_rng(5)
    return [
        sums * random.dirichlet(np.full(length_s, 0.3), size=length_t)
        for length_t, length_s in lengths
    ]


def padded(
    sentences: list[NDArray[np.float64]], pads_first: tuple[bool, bool]
) -> list[torch.Tensor]:
    """weights (B, T, S), source_mask (B, S) and target_mask (B, T) of a batch.

    `pads_first` says for each side whether its pads come first.
    """
    most_t, most_s = (max(weights.shape[axis] for weights in sentences) + 2 for axis in (0, 1))
    weights = torch.zeros(len(sentences), most_t, most_s, dtype=torch.float64)
    source_mask = torch.zeros(len(sentences), most_s, dtype=torch.bool)
    target_mask = torch.zeros(len(sentences), most_t, dtype=torch.bool)
    for i, rows in enumerate(sentences):
        length_t, length_s = rows.shape
        t = slice(most_t - length_t, None) if pads_first[1] else slice(0, length_t)
        s = slice(most_s - length_s, None) if pads_first[0] else slice(0, length_s)
        weights[i, :, s], weights[i, t, s] = math.nan, torch.from_numpy(rows)
        source_mask[i, s], target_mask[i, t] = True, True
    return [weights, source_mask, target_mask]


def measured(*batches: list[torch.Tensor]) -> dict[str, float | None]:
    statistics = AttentionStatistics()
    for batch in batches:
        statistics.update(*batch)
    return statistics.compute()


LENGTHS = [(3, 5), (6, 2), (4, 4), (1, 3), (2, 1)]


@pytest.mark.parametrize("source_first", [True, False])
@pytest.mark.parametrize("target_first", [True, False])
def test_attention_statistics_match_the_formulas_for_any_padding(
    source_first: bool, target_first: bool
) -> None:
    """A batch counts by its tokens, and a row as if it summed to one."""
    expected = pytest.approx(by_hand(drawn(LENGTHS)), abs=1e-6)
    for sums in (1.0, 0.5):
        sentences, sides = drawn(LENGTHS, sums), (source_first, target_first)
        assert measured(padded(sentences, sides)) == expected
        assert (
            measured(padded(sentences[:1], sides), padded(sentences[1:], sides[::-1])) == expected
        )


def test_attention_statistics_of_signed_weights_are_those_of_their_sizes() -> None:
    expected = pytest.approx(by_hand(drawn(LENGTHS)), abs=1e-6)
    random = np.random.default_rng(6)
    signed = [rows * random.choice([-1.0, 1.0], rows.shape) for rows in drawn(LENGTHS, 3.0)]
    assert measured(padded(signed, (True, False))) == expected


ENTROPY = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))


@pytest.mark.parametrize(
    ("rows", "source_mask", "expected"),
    [
        # A row of zeros covers nothing.
        ([[1.0, 0.0], [0.0, 0.0]], [True, True], named(0.0, 0.5, 1.0, 0.0)),
        # Each of two target tokens looks at its own source token with 3/4, and at the pad with 1/4.
        (
            [[0.25, 0.75, 0.0], [0.25, 0.0, 0.75]],
            [False, True, True],
            named(ENTROPY, 0.75, 1.0, 0.25),
        ),
        # All look at one token.
        ([[0.0, 1.0, 0.0]] * 3, [True] * 3, named(0.0, 1 / 3, 2 / 3, 0.0)),
    ],
)
def test_attention_statistics_of_hand_made_rows(
    rows: list[list[float]], source_mask: list[bool], expected: dict[str, float]
) -> None:
    batch = [
        torch.tensor([rows]),
        torch.tensor([source_mask]),
        torch.ones(1, len(rows), dtype=torch.bool),
    ]
    assert measured(batch) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rows", "diagonality", "tolerance"),
    [
        (np.eye(400), 1.0, 1e-5),
        (np.full((400, 400), 1 / 400), 5 / 4 - math.log(2), 0.001),
        (np.eye(400)[::-1].copy(), 2 * math.log(2) - 1, 0.003),
    ],
)
def test_diagonality_of_known_matrices(
    rows: NDArray[np.float64], diagonality: float, tolerance: float
) -> None:
    assert measured(padded([rows], (True, False)))["attention_diagonality"] == pytest.approx(
        diagonality, abs=tolerance
    )


def test_attention_statistics_without_attention_are_none() -> None:
    statistics = AttentionStatistics()
    source_mask, target_mask = (
        torch.ones(2, 3, dtype=torch.bool),
        torch.ones(2, 4, dtype=torch.bool),
    )
    statistics.update(None, source_mask, target_mask)
    assert set(statistics.compute().values()) == {None}


def test_attention_statistics_of_two_processes_equal_those_of_one() -> None:
    torch.manual_seed(0)
    whole, halves = AttentionStatistics(), [AttentionStatistics(), AttentionStatistics()]
    for half, length in zip(halves, (3, 5), strict=True):
        weights = torch.rand(2, length, 4).softmax(-1)
        source_mask = torch.tensor([[True] * 4, [True] * 3 + [False]])
        batch = weights, source_mask, torch.ones(2, length, dtype=torch.bool)
        half.update(*batch)
        whole.update(*batch)
    gathered = halves[0]
    gathered.merge_state(halves[1])
    assert gathered.compute() == pytest.approx(whole.compute())
    assert gathered.tokens[0] == 16
