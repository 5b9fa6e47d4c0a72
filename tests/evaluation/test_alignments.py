"""Alignment error rate, offsets and wrong links, against counts done by hand."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike

from attnlab.batch import Batch
from attnlab.data.corpus import Cleaning
from attnlab.data.hub import HubCorpus
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, WordTrainer
from attnlab.evaluation.alignments import AlignmentStatistics, between_words
from attnlab.search.greedy import GreedySearch
from attnlab.tasks.translation.evaluation import evaluate
from copier import Copier

Sentence = tuple[ArrayLike, ArrayLike, ArrayLike]


def measured(*sentences: Sentence) -> AlignmentStatistics:
    """weights (T, S), sure links and possible links of each sentence."""
    statistics = AlignmentStatistics()
    for row, (weights, sure, possible) in enumerate(sentences):
        tokens = [f"token {t}" for t in range(len(np.asarray(weights)))]
        statistics.update(row, weights, sure, possible, tokens)
    return statistics


# Target 0 -> source 1 (sure), 1 -> 0 (possible only), 2 -> 2 (wrong); target 3 has no link.
MIXED: Sentence = (
    [[0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.0, 0.3, 0.7], [1, 0, 0]],
    [[0, 1], [2, 0]],
    [[0, 1], [2, 0], [1, 0], [1, 2]],
)
RIGHT: Sentence = (np.eye(2), [[0, 0]], [[0, 0]])


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        ([MIXED], 1 - (1 + 2) / (3 + 2)),
        ([MIXED, RIGHT], 1 - (2 + 3) / (4 + 3)),
        # Sure links are possible, too
        ([(np.eye(4)[[2, 0, 1, 3]], [[0, 2], [1, 0], [2, 1]], [])], 0),
        ([(np.eye(2), [[0, 0], [0, 0]], np.zeros((0, 2)))], 0),  # duplicates count once
        ([([[0.2, 0.8]], [[0, 0]], [[0, 0]])], 1),  # the strongest column is <eos>
        ([([[0.5, 0.5]], [[0, 0]], [])], 0),  # the first of equals is the strongest
        ([(np.eye(2), [], [])], None),
        ([], None),
    ],
)
def test_alignment_error_rate_follows_the_formula(
    sentences: list[Sentence], expected: float | None
) -> None:
    assert measured(*sentences).metrics()["aer"] == (
        None if expected is None else pytest.approx(expected)
    )


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        # Target tokens look at 0, 2, 4, 0; offsets are counted from the nearest right token, the
        # last has no link.
        ([(np.eye(5)[[0, 2, 4, 0]], [], [[0, 0], [1, 1], [2, 0], [2, 3]])], {0: 1, 1: 2}),
        ([(np.eye(4)[[0, 3]], [], [[0, 2], [1, 3]])], {-2: 1, -1: 0, 0: 1}),
        ([(np.eye(2), [], [[1, 1]])] * 3, {0: 3}),
        ([(np.eye(2), [], [])], {}),
    ],
)
def test_offsets_are_counted_from_the_nearest_right_token(
    sentences: list[Sentence], expected: dict[int, int]
) -> None:
    assert measured(*sentences).offsets() == [
        {"offset": offset, "tokens": expected[offset]} for offset in expected
    ]


def test_wrong_links_are_counted_by_target_token_the_most_wrong_first() -> None:
    statistics = AlignmentStatistics()
    for row in range(2):
        # The second "b" looks at the first column, where it has no link; <eos> has no link at all.
        possible = [[0, 0], [0, 1], [1, 1], [2, 1], [2, 2]]
        statistics.update(row, np.eye(3)[[0, 1, 0, 2]], [], possible, ["a", "b", "b", "<eos>"])
    assert statistics.wrong_links() == [
        {"token": "b", "links": 4, "wrong": 2},
        {"token": "a", "links": 2, "wrong": 0},
    ]


def test_precision_and_recall_follow_their_formulas() -> None:
    assert measured(MIXED).metrics() == pytest.approx(
        {
            "aer": 1 - (1 + 2) / (3 + 2),
            "alignment_precision": 2 / 3,
            "alignment_recall": 1 / 2,
            "alignment_mass": (0.8 + 0.6 + 0.2 + 0.0) / 3,
        }
    )


def test_complete_sentence_counts_target_words_without_a_link() -> None:
    weights, sure, possible = MIXED
    statistics = AlignmentStatistics()
    statistics.update(0, weights, sure, possible, "abcd", complete=True)
    statistics.update(1, weights, [], [], "abcd", complete=True)  # has no gold alignment
    assert statistics.metrics() == pytest.approx(
        {
            "aer": 1 - (1 + 2) / (4 + 2),
            "alignment_precision": 2 / 4,
            "alignment_recall": 1 / 2,
            "alignment_mass": (0.8 + 0.6 + 0.2 + 0.0) / 3,
        }
    )


def test_weight_between_words_is_summed_over_the_source_and_averaged_over_the_target() -> None:
    # Source words 0 0 1 and <eos>; target words 0, a space, 1 1 and <eos>.
    weights = [
        [0.3, 0.3, 0.4, 0],
        [0, 0, 0, 1],
        [0.1, 0.0, 0.9, 0],
        [0.5, 0.4, 0.1, 0],
        [0, 0, 1, 0],
    ]
    words = [np.array([0, 0, 1]), np.array([0, -1, 1, 1])]
    found, sure, possible, tokens = between_words(
        weights, [[0, 0], [0, 1]], [[2, 2]], words, "ab cd"
    )
    np.testing.assert_allclose(found, [[0.6, 0.4], [0.5, 0.5]])
    assert (sure, possible, tokens) == ([(0, 0), (0, 0)], [(1, 1)], ["ab", "cd"])


class Diagonal(Copier):
    """A copier whose target token t attends to source token t when the reference is fed.

    Sources and targets are equal texts.
    """

    def forward(self, batch: Batch) -> SimpleNamespace:
        unrolled = super().forward(batch)
        unrolled.attention_weights = torch.zeros(*batch.target_input.shape, batch.source.shape[1])
        for row, (source, target) in enumerate(
            zip(batch.source_mask, batch.target_mask, strict=True)
        ):
            size = int(source.sum())
            unrolled.attention_weights[row][target.nonzero(), source.nonzero().T] = torch.eye(size)
        return unrolled


@pytest.mark.parametrize(
    "tokenizer",
    [
        WordTrainer(split="whitespace", min_frequency=1),
        CharacterTrainer(),
        BpeTrainer(vocabulary_size=30),
    ],
    ids=["words", "characters", "bpe"],
)
def test_alignment_error_rate_between_words_is_the_same_for_every_tokenizer(
    tokenizer: TokenizerTrainer, tmp_path: Path
) -> None:
    gold = ["0-0 1-1 2-2", "0-1 1-0", "0-0 1?1 2?0", None]
    texts = ["ein  Hund läuft", "zwei Hunde", "고양이가 학교에 갔다", "ohne Links"]
    rows = [{"s": text, "t": text, "gold": links} for text, links in zip(texts, gold, strict=True)]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    everywhere = dict.fromkeys(("train", "validation", "test"), "train")
    place = (None, str(tmp_path / "all.jsonl"), None, None, everywhere, 1, None, None, None, None)
    corpus = HubCorpus(*place, "s", "t", "gold", None, 0, "13a", None, Cleaning(), tokenizer)
    prepare(corpus, Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    found = evaluate([Diagonal(data.target_tokenizer.size)], GreedySearch(3), data).metrics
    # 8 words in sentences with links; 6 sure links, 4 of them hit; 2 more possible links, 1 hit.
    expected = {
        "aer": 1 - (4 + 5) / (8 + 6),
        "alignment_precision": 5 / 8,
        "alignment_recall": 4 / 6,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
