"""Which sentences a page shows: the best, the worst, and some that nobody chose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import CHRF


def sample_translations(rows: Sequence[dict[str, Any]], count: int = 5) -> dict[str, list[dict[str, Any]]]:
    """{"random", "best", "worst"}: `count` rows each, with their sentence-level chrF2 as `chrf`.

    Random ones come from a fixed seed; the worst are never equal to their reference. Among equally good ones
    the longer reference comes first, on both ends: a long success or failure says more than a short one.
    """
    metric = CHRF()
    scores = [metric.sentence_score(row["hypothesis"], [row["reference"]]).score for row in rows]
    everywhere = range(len(rows))
    wrong = [index for index, row in enumerate(rows) if row["hypothesis"] != row["reference"]]

    def length(index: int) -> int:
        return len(rows[index]["reference"])

    chosen = {
        "random": sorted(random.Random(0).sample(everywhere, min(count, len(rows)))),
        "best": sorted(everywhere, key=lambda i: (-scores[i], -length(i), i))[:count],
        "worst": sorted(wrong, key=lambda i: (scores[i], -length(i), i))[:count],
    }
    return {
        name: [{**rows[index], "chrf": scores[index], "number": index + 1} for index in indices]
        for name, indices in chosen.items()
    }


def sample_predictions(rows: Sequence[dict[str, Any]], count: int = 5) -> dict[str, list[dict[str, Any]]]:
    """{"random", "surest mistakes", "least sure"}: `count` rows each, by the probability of the predictions.

    Random ones come from a fixed seed.
    """
    everywhere = range(len(rows))
    wrong = [index for index, row in enumerate(rows) if not row["correct"]]
    chosen = {
        "random": sorted(random.Random(0).sample(everywhere, min(count, len(rows)))),
        "surest mistakes": sorted(wrong, key=lambda i: (-rows[i]["probability"], i))[:count],
        "least sure": sorted(everywhere, key=lambda i: (rows[i]["probability"], i))[:count],
    }
    return {name: [{**rows[i], "number": i + 1} for i in indices] for name, indices in chosen.items()}
