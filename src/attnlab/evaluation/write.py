"""The evaluation folder: what a trained model did on a split, as plain files.

metrics.json       {name: number or null}
signatures.json    {name: how the number came about}
hypotheses.jsonl   a line a sentence, in the split's order
by_length.json     quality by source length
attention.npz      a few sentences' attention maps (none: an empty list of maps)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.composition.atomic import atomic_folder
from attnlab.evaluation.attention_map import AttentionMap, save_maps


@dataclass(frozen=True)
class DecodedSentence:
    """One sentence of the split and what the model made of it.

    score: the search's score of the hypothesis.
    source_length: in tokens, `<eos>` not counted.
    """

    source: str
    reference: str
    hypothesis: str
    score: float
    source_length: int

    @property
    def exact(self) -> bool:
        return self.hypothesis == self.reference


def write_evaluation(
    folder: Path,
    metrics: Mapping[str, float | int | None],
    signatures: Mapping[str, str],
    sentences: Sequence[DecodedSentence],
    by_length: Sequence[Mapping[str, float | int]],
    maps: Sequence[AttentionMap] = (),
) -> None:
    """Write the evaluation folder, all of it or nothing. Numbers that are not finite become null."""
    with atomic_folder(Path(folder)) as temporary:
        _write_json(temporary / "metrics.json", dict(metrics))
        _write_json(temporary / "signatures.json", dict(signatures))
        _write_json(temporary / "by_length.json", [dict(bucket) for bucket in by_length])
        with (temporary / "hypotheses.jsonl").open("w", encoding="utf-8", newline="\n") as lines:
            for sentence in sentences:
                row = {**vars(sentence), "exact": sentence.exact}
                lines.write(json.dumps(_finite(row), ensure_ascii=False, sort_keys=True) + "\n")
        save_maps(maps, temporary / "attention.npz")


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(_finite(content), ensure_ascii=False, indent=2, sort_keys=True, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def _finite(content: Any) -> Any:
    """JSON knows no NaN and no infinity (a perplexity can overflow): null stands for them."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
