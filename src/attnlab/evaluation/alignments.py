"""Attention compared with alignments made by hand: error rate, offsets, wrong links.

Axes: B batch, T target, S source; tokens or words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from attnlab.batch import Batch
from attnlab.data.prepared import PreparedData

Link = tuple[int, int]
"""(target position, source position), from 0."""


class AlignmentStatistics:
    """Counts of links that the attention gets right, over batches.

    Every target token that has a possible link gets one hypothesised link, to its strongest source
    token (the first of equals). The other target tokens get none, except between words (see
    `between_words`). The weights are those with the reference as the decoder's input, so that row t
    belongs to reference token t.
    """

    def __init__(self) -> None:
        self._hypothesised = 0
        self._sure = 0
        self._hit_sure = 0
        self._hit_possible = 0
        self._offsets: Counter[int] = Counter()
        self._linked: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()

    def update_batch(self, weights: Tensor, batch: Batch, data: PreparedData) -> None:
        """Add a batch of the test split: weights (B, T, S) of tokens, pads included."""
        split = data.split("test")
        for i, row in enumerate(batch.rows.tolist()):
            target_mask = batch.target_mask[i]
            source_mask = batch.source_mask[i]
            matrix = weights[i][target_mask][:, source_mask].float().cpu().numpy()
            sure = split.links("sure", row)
            possible = split.links("possible", row)

            words = split.words(row)
            if words is None:
                target_ids = batch.target_output[i][target_mask].tolist()
                self.update(matrix, sure, possible, data.target_tokenizer.tokens(target_ids))
            else:
                sentence = between_words(matrix, sure, possible, words, split.target_text(row))
                self.update(*sentence, complete=True)

    def update(
        self,
        weights: ArrayLike,
        sure: ArrayLike,
        possible: ArrayLike,
        tokens: Sequence[str],
        complete: bool = False,
    ) -> None:
        """Add one sentence.

        weights: (T, S), without pads. Rows and columns start at the first token; the `<eos>` row
            and column at the end may be there, and a token whose strongest column is `<eos>` has a
            wrong link.
        sure, possible: (n, 2) [target position, source position], from 0, without `<bos>`; a sure
            link is possible too.
        tokens: T, of the target.
        complete: whether target tokens without a link count too, in a sentence that has some.
        """
        matrix = np.asarray(weights)
        sure_links = set(_links(sure))
        sources_of: dict[int, list[int]] = {}
        for target, source in dict.fromkeys([*_links(possible), *_links(sure)]):
            sources_of.setdefault(target, []).append(source)

        self._sure += len(sure_links)
        if complete and sources_of:
            self._hypothesised += len(matrix)
        else:
            self._hypothesised += len(sources_of)

        for target, sources in sources_of.items():
            strongest = int(matrix[target].argmax())
            self._hit_sure += (target, strongest) in sure_links
            self._hit_possible += strongest in sources
            nearest_offset = min((strongest - source for source in sources), key=abs)
            self._offsets[nearest_offset] += 1
            self._linked[tokens[target]] += 1
            self._wrong[tokens[target]] += strongest not in sources

    def metrics(self) -> dict[str, float | None]:
        """`aer` (lower is better), `alignment_precision` and `alignment_recall`, 0..1.

        After Och and Ney 2003 ("A Systematic Comparison of Various Statistical Alignment Models").
        A number is None where nothing was counted. With A the hypothesised links, S the sure and P
        the possible ones (S counts as a part of P), and the sizes summed over the corpus:

            AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
            precision = |A ∩ P| / |A|
            recall = |A ∩ S| / |S|
        """
        aer = precision = recall = None
        if self._hypothesised:
            hits = self._hit_sure + self._hit_possible
            aer = 1 - hits / (self._hypothesised + self._sure)
            precision = self._hit_possible / self._hypothesised
        if self._sure:
            recall = self._hit_sure / self._sure
        return {"aer": aer, "alignment_precision": precision, "alignment_recall": recall}

    def offsets(self) -> list[dict[str, int]]:
        """A row {"offset", "tokens"} for each offset from the smallest to the largest.

        The offset of a target token is the position of its strongest source token less that of the
        nearest source token it has a possible link to: 0 is a right one, 1 the one behind it. An
        alignment error rate near 1 with all offsets at 1 is not a failure to align: the decoder's
        state that is the query, or the encoder's output that is the key, describes the neighbour.
        """
        if not self._offsets:
            return []
        span = range(min(self._offsets), max(self._offsets) + 1)
        return [{"offset": offset, "tokens": self._offsets[offset]} for offset in span]

    def wrong_links(self) -> list[dict[str, int | str]]:
        """A row {"token", "links", "wrong"} for each target token that has links.

        Those with most wrong links come first. Where a target token follows from the tokens before
        it, a model can do without the source, and no gradient teaches the attention where to look:
        an alignment error rate may consist of such tokens alone.
        """
        most_wrong_first = sorted(self._linked, key=lambda token: (-self._wrong[token], token))
        return [
            {"token": token, "links": self._linked[token], "wrong": self._wrong[token]}
            for token in most_wrong_first
        ]


def between_words(
    weights: ArrayLike,
    sure: ArrayLike,
    possible: ArrayLike,
    words: Sequence[NDArray[np.int64]],
    text: str,
) -> tuple[NDArray[np.float64], list[Link], list[Link], list[str]]:
    """Weights, sure and possible links, and target words, for `AlignmentStatistics.update`.

    The weight between two words is the sum over the tokens of the source word, and the mean over
    the tokens of the target word. `<eos>` and tokens between words belong to no word.

    weights, sure, possible: of tokens, as in `AlignmentStatistics.update`.
    words: the word of each source token (S,) and of each target token (T,), -1 between words.
    text: the target.
    """
    source_words, target_words = words
    source_membership, _ = _membership(source_words)
    target_membership, target_numbers = _membership(target_words)

    without_eos = np.asarray(weights, dtype=np.float64)[: len(target_words), : len(source_words)]
    mean_over_target = target_membership.T / target_membership.sum(axis=0)[:, np.newaxis]
    word_weights = mean_over_target @ without_eos @ source_membership

    def word_links(links: ArrayLike) -> list[Link]:
        found = []
        for target, source in _links(links):
            target_word = int(target_membership[target].argmax())
            source_word = int(source_membership[source].argmax())
            found.append((target_word, source_word))
        return found

    every_word = text.split()
    linkable_words = [every_word[number] for number in target_numbers]
    return word_weights, word_links(sure), word_links(possible), linkable_words


def _membership(words: NDArray[np.int64]) -> tuple[NDArray[np.bool_], list[int]]:
    """Whether each token belongs to each word, (tokens, words), and the numbers of these words.

    A word without a token of its own is left out.
    """
    numbers = np.unique(words[words >= 0])
    return words[:, np.newaxis] == numbers, numbers.tolist()


def _links(links: ArrayLike) -> list[Link]:
    pairs = np.asarray(links, dtype=np.int64).reshape(-1, 2).tolist()
    return [(target, source) for target, source in pairs]
