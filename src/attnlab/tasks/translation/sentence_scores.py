"""The score of single translations, and the worst ones by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sacrebleu.metrics import CHRF


def sentence_scores(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """chrF2 of each single sentence, 0 to 100.

    rows: as in hypotheses.jsonl.
    """
    metric = CHRF()
    return [metric.sentence_score(row["hypothesis"], [row["reference"]]).score for row in rows]


def worst_rows(
    rows: Sequence[Mapping[str, Any]], scores: Sequence[float], among: Iterable[int], count: int
) -> list[int]:
    """Up to `count` of the rows `among`, the lowest score first.

    A hypothesis that equals its reference is never among the worst. Ties put the longer reference
    first, and then the earlier row.
    """
    wrong = []
    for number in among:
        row = rows[number]
        if row["hypothesis"] == row["reference"]:
            continue
        place = (scores[number], -len(row["reference"]), number)
        wrong.append(place)
    return [number for _, _, number in sorted(wrong)[:count]]
