"""A metric of decoded sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from attnlab.evaluation.corpus_metric import MeanOfSentences, Rows


class Repetition(MeanOfSentences):
    """Neighbours that are the same token, for each 100 tokens of a hypothesis.

    case: False takes `The the` for a repetition, too.
    """

    label = "repetition"
    better = "↓"
    digits = 2
    meaning = "0–100, tokens that repeat the one before them, mean over sentences; free-running"
    least, most = 0.0, 100.0

    def __init__(self, case: bool = True) -> None:
        self.case = case

    def sentence_values(self, rows: Rows) -> Sequence[float]:
        return [self._repeated(row["hypothesis"]) for row in rows]

    def _repeated(self, text: str) -> float:
        tokens = text.split() if self.case else text.lower().split()
        if not tokens:
            return 0.0
        repeated = sum(one == other for one, other in pairwise(tokens))
        return 100 * repeated / len(tokens)
