"""How attention weights compare with alignments made by hand: error rate, offsets, wrong links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from attnlab.batch import Batch
from attnlab.data.prepared import PreparedData


class AlignmentStatistics:
    """Every target token that has a possible link gets one hypothesised link, to its strongest
    source token (the first of equals); the other target tokens get none, but where words are
    aligned (see `between_words`). The weights are those with the reference fed, so that row t
    belongs to reference token t.
    """

    def __init__(self) -> None:
        self._hypothesised = self._sure = self._hit_sure = self._hit_possible = 0
        self._offsets: Counter[int] = Counter()
        self._linked: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()

    def update_batch(self, weights: Tensor, batch: Batch, data: PreparedData) -> None:
        """Add a batch of the test split: weights (B, T, S) of tokens, and the links of the prepared
        data.
        """
        split = data.split("test")
        for i, row in enumerate(batch.rows.tolist()):
            real = weights[i][batch.target_mask[i]][:, batch.source_mask[i]].float().cpu().numpy()
            written = data.target_tokenizer.tokens(
                batch.target_output[i][batch.target_mask[i]].tolist()
            )
            seen, words = (
                (real, split.links("sure", row), split.links("possible", row)),
                split.words(row),
            )
            if words is None:
                self.update(*seen, written)
            else:
                self.update(*between_words(*seen, words, split.target_text(row)), complete=True)

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
            and column
            at the end may be there, and a token whose strongest column is `<eos>` has a wrong link.
        sure, possible: (n, 2) [target position, source position], from 0, without `<bos>`; a sure
            link is possible too.
        tokens: T, of the target.
        complete: whether target tokens without a link count too, in a sentence that has some.
        """
        matrix = np.asarray(weights)
        sure_links, possible_links = _links(sure), _links(possible)
        sources: dict[int, list[int]] = {}
        for target, source in dict.fromkeys([*possible_links, *sure_links]):
            sources.setdefault(target, []).append(source)
        self._hypothesised += len(matrix) if complete and sources else len(sources)
        self._sure += len(set(sure_links))
        for target, linked in sources.items():
            strongest = int(matrix[target].argmax())
            self._hit_sure += (target, strongest) in sure_links
            self._hit_possible += strongest in linked
            self._offsets[min((strongest - source for source in linked), key=abs)] += 1
            self._linked[tokens[target]] += 1
            self._wrong[tokens[target]] += strongest not in linked

    def metrics(self) -> dict[str, float | None]:
        """After Och and Ney 2003 ("A Systematic Comparison of Various Statistical Alignment
        Models"), 0..1: `aer`, lower is better, `alignment_precision` and `alignment_recall`; None
        where nothing was counted.

        With A the hypothesised links, S the sure and P the possible ones (S counts as a part of P),
        and the sizes summed over the corpus:

            AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), precision = |A ∩ P| / |A|, recall = |A ∩ S|
            / |S|
        """
        hypothesised, sure = self._hypothesised, self._sure
        both = self._hit_sure + self._hit_possible
        return {
            "aer": 1 - both / (hypothesised + sure) if hypothesised else None,
            "alignment_precision": self._hit_possible / hypothesised if hypothesised else None,
            "alignment_recall": self._hit_sure / sure if sure else None,
        }

    def offsets(self) -> list[dict[str, int]]:
        """A row {"offset", "tokens"} for each offset from the smallest to the largest that
        occurred.

        The offset of a target token is the position of its strongest source token less that of the
        nearest source token it has a possible link to: 0 looks at a right one, 1 at the one behind
        it. An alignment error rate near 1 with all offsets at 1 is not a failure to align: the
        state that asks, or the encoder's output that answers, holds the neighbour.
        """
        if not self._offsets:
            return []
        span = range(min(self._offsets), max(self._offsets) + 1)
        return [{"offset": offset, "tokens": self._offsets[offset]} for offset in span]

    def wrong_links(self) -> list[dict[str, int | str]]:
        """A row {"token", "links", "wrong"} for each target token that has links, those with most
        wrong ones first.

        Where a target token follows from the tokens before it, a model need not look at all, and no
        gradient says
        where: an alignment error rate may consist of such tokens alone.
        """
        order = sorted(self._linked, key=lambda token: (-self._wrong[token], token))
        return [
            {"token": token, "links": self._linked[token], "wrong": self._wrong[token]}
            for token in order
        ]


def between_words(
    weights: ArrayLike,
    sure: ArrayLike,
    possible: ArrayLike,
    words: Sequence[NDArray[np.int64]],
    text: str,
) -> tuple[NDArray[np.float64], list[tuple[int, int]], list[tuple[int, int]], list[str]]:
    """Weights, sure and possible links, and target words, as `AlignmentStatistics.update` takes
    them.

    The weight between two words is the sum over the tokens of the source word, and the mean over
    the tokens of the target word. `<eos>` and tokens between words belong to none.

    weights, sure, possible: of tokens, as there.
    words: the word of each source token (S,) and of each target token (T,), -1 between words.
    text: the target.
    """
    (of_source, _), (of_target, written) = (_members(each) for each in words)
    matrix = np.asarray(weights, dtype=np.float64)[: len(words[1]), : len(words[0])]
    of_words = of_target.T / of_target.sum(axis=0)[:, np.newaxis] @ matrix @ of_source

    def linked(links: ArrayLike) -> list[tuple[int, int]]:
        return [(int(of_target[t].argmax()), int(of_source[s].argmax())) for t, s in _links(links)]

    every = text.split()
    return of_words, linked(sure), linked(possible), [every[word] for word in written]


def _members(words: NDArray[np.int64]) -> tuple[NDArray[np.bool_], list[int]]:
    """Whether each token is one of each word that has tokens, (tokens, words), and the numbers of
    these words.
    """
    numbers = np.unique(words[words >= 0])
    return words[:, np.newaxis] == numbers, numbers.tolist()


def _links(links: ArrayLike) -> list[tuple[int, int]]:
    return [
        (target, source)
        for target, source in np.asarray(links, dtype=np.int64).reshape(-1, 2).tolist()
    ]
