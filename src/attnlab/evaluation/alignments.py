"""Attention compared with alignments made by hand: error rate, offsets, wrong links.

Axes: B batch, T target, S source; tokens or words. N sentences, K sums, B samples of sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from attnlab.batch import Batch
from attnlab.data.prepared import PreparedData
from attnlab.evaluation.corpus_metric import CorpusMetric, Rows

Link = tuple[int, int]
"""(target position, source position), from 0."""


class LinkCounts(NamedTuple):
    """Links of one sentence.

    hypothesised: of the attention. sure: of the gold alignment.
    hit_sure, hit_possible: hypothesised links that are sure ones, or possible ones (which the sure
        ones are too).
    linked: target tokens that have a possible link.
    mass: the attention of these on their possible links, added up.
    """

    hypothesised: int
    sure: int
    hit_sure: int
    hit_possible: int
    linked: int
    mass: float


class AlignmentMetric(CorpusMetric):
    """A metric of the sums of `LinkCounts`; NaN where it is not defined.

    The rows have them as `link_counts`, a mapping.
    """

    sums = len(LinkCounts._fields)

    def statistics(self, rows: Rows) -> NDArray[np.float64]:
        counts = [LinkCounts(**row["link_counts"]) for row in rows]
        return statistics_of_links(counts)


def statistics_of_links(counts: Iterable[LinkCounts]) -> NDArray[np.float64]:
    """(N, K), a row for each sentence."""
    return np.array(list(counts), dtype=np.float64).reshape(-1, AlignmentMetric.sums)


class AlignmentErrorRate(AlignmentMetric):
    """1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), with A the hypothesised links, S the sure and P the
    possible ones (Och and Ney 2003).
    """

    better = "↓"

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        hypothesised, sure, hit_sure, hit_possible, _, _ = sums.T
        # Without a hypothesis there is nothing to be wrong.
        compared = np.where(hypothesised > 0, hypothesised + sure, 0)
        return 1 - _ratio(hit_sure + hit_possible, compared)


class AlignmentPrecision(AlignmentMetric):
    """|A ∩ P| / |A|."""

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        hypothesised, _, _, hit_possible, _, _ = sums.T
        return _ratio(hit_possible, hypothesised)


class AlignmentRecall(AlignmentMetric):
    """|A ∩ S| / |S|."""

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        _, sure, hit_sure, _, _, _ = sums.T
        return _ratio(hit_sure, sure)


class AlignmentMass(AlignmentMetric):
    """The attention on possible links, mean over the target tokens that have some."""

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        *_, linked, mass = sums.T
        return _ratio(mass, linked)


ALIGNMENT_METRICS: dict[str, AlignmentMetric] = {
    "aer": AlignmentErrorRate(),
    "alignment_precision": AlignmentPrecision(),
    "alignment_recall": AlignmentRecall(),
    "alignment_mass": AlignmentMass(),
}


def _ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """NaN where the denominator is 0."""
    undefined = np.full_like(denominator, np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)


class AlignmentStatistics:
    """Counts of links that the attention gets right, over batches.

    Every target token that has a possible link gets one hypothesised link, to its strongest source
    token (the first of equals). The other target tokens get none, except between words (see
    `between_words`). The weights are those with the reference as the decoder's input, so that row t
    belongs to reference token t.
    """

    def __init__(self) -> None:
        self.by_sentence: dict[int, LinkCounts] = {}
        """{its row in the test split: its counts}"""
        self._offsets: Counter[int] = Counter()
        self._linked: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()

    def update_batch(
        self, weights: Tensor, batch: Batch, data: PreparedData, counted: Tensor | None = None
    ) -> None:
        """Add a batch of the test split: weights (B, T, S) of tokens, pads included.

        counted: (B, T), the target tokens whose links count; None counts all.
        """
        split = data.split("test")
        for i, row in enumerate(batch.rows.tolist()):
            target_mask = batch.target_mask[i]
            source_mask = batch.source_mask[i]
            matrix = weights[i][target_mask][:, source_mask].float().cpu().numpy()
            sure = split.links("sure", row)
            possible = split.links("possible", row)
            if counted is not None:
                is_counted = counted[i][target_mask].cpu().numpy()
                sure = sure[is_counted[sure[:, 0]]]
                possible = possible[is_counted[possible[:, 0]]]

            words = split.words(row)
            if words is None:
                target_ids = batch.target_output[i][target_mask].tolist()
                tokens = data.target_tokenizer.tokens(target_ids)
                self.update(row, matrix, sure, possible, tokens)
            else:
                sentence = between_words(matrix, sure, possible, words, split.target_text(row))
                self.update(row, *sentence, complete=counted is None)

    def update(
        self,
        row: int,
        weights: ArrayLike,
        sure: ArrayLike,
        possible: ArrayLike,
        tokens: Sequence[str],
        complete: bool = False,
    ) -> None:
        """Add one sentence.

        row: of the sentence in the test split.
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

        hit_sure = hit_possible = 0
        mass = 0.0
        for target, sources in sources_of.items():
            strongest = int(matrix[target].argmax())
            hit_sure += (target, strongest) in sure_links
            hit_possible += strongest in sources
            mass += float(matrix[target, sources].sum())
            nearest_offset = min((strongest - source for source in sources), key=abs)
            self._offsets[nearest_offset] += 1
            self._linked[tokens[target]] += 1
            self._wrong[tokens[target]] += strongest not in sources
        hypothesised = len(matrix) if complete and sources_of else len(sources_of)
        self.by_sentence[row] = LinkCounts(
            hypothesised, len(sure_links), hit_sure, hit_possible, len(sources_of), mass
        )

    def metrics(self) -> dict[str, float | None]:
        """`aer` (lower is better), `alignment_precision`, `alignment_recall` and `alignment_mass`.

        The first three are 0..1, the mass too where the weights add up to 1.

        After Och and Ney 2003 ("A Systematic Comparison of Various Statistical Alignment Models"),
        the counts summed over the corpus. A number is None where nothing was counted.
        """
        sums = statistics_of_links(self.by_sentence.values()).sum(axis=0, keepdims=True)  # (1, K)
        found: dict[str, float | None] = {}
        for name, metric in ALIGNMENT_METRICS.items():
            value = float(metric.scores(sums)[0])
            found[name] = None if np.isnan(value) else value
        return found

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
