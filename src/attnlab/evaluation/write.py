"""The evaluation folder: what a trained model did on a split, as plain files.

metrics.json       {name: number or null}
signatures.json    {name: how the number came about}
hypotheses.jsonl   a line a sentence, in the split's order; with `n_best` where more than one hypothesis was asked for
by_length.json     quality by source length
alignment_offsets.json  how far beside the right token the attention looked (nothing known: an empty list)
wrong_links.json   the target tokens whose attention looks elsewhere than their links (nothing known: an empty list)
attention.npz      a few sentences' attention maps (none: an empty list of maps)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.files import atomic_folder


@dataclass(frozen=True)
class DecodedSentence:
    """One sentence of the split and what the model made of it.

    score: the search's score of the hypothesis.
    source_length: in tokens, `<eos>` not counted.
    n_best: texts and scores of the best hypotheses, that one first; None where no more than one was asked for.
    """

    source: str
    reference: str
    hypothesis: str
    score: float
    source_length: int
    n_best: list[tuple[str, float]] | None = None

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
    alignment_offsets: Sequence[Mapping[str, int]] = (),
    wrong_links: Sequence[Mapping[str, int | str]] = (),
) -> None:
    """Write the evaluation folder, all of it or nothing. Numbers that are not finite become null."""
    with atomic_folder(Path(folder)) as temporary:
        write_json(temporary / "metrics.json", dict(metrics))
        write_json(temporary / "signatures.json", dict(signatures))
        write_json(temporary / "by_length.json", [dict(bucket) for bucket in by_length])
        write_json(temporary / "alignment_offsets.json", [dict(row) for row in alignment_offsets])
        write_json(temporary / "wrong_links.json", [dict(row) for row in wrong_links])
        write_lines(temporary / "hypotheses.jsonl", [_row(sentence) for sentence in sentences])
        save_maps(maps, temporary / "attention.npz")


def _row(sentence: DecodedSentence) -> dict[str, Any]:
    row = {**vars(sentence), "exact": sentence.exact}
    n_best = row.pop("n_best")
    if n_best is not None:
        row["n_best"] = [{"hypothesis": text, "score": score} for text, score in n_best]
    return row


def write_json(path: Path, content: Any) -> None:
    text = json.dumps(_finite(content), ensure_ascii=False, indent=2, sort_keys=True, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """A line of JSON for each row."""
    with path.open("w", encoding="utf-8", newline="\n") as lines:
        for row in rows:
            lines.write(json.dumps(_finite(dict(row)), ensure_ascii=False, sort_keys=True) + "\n")


def _finite(content: Any) -> Any:
    """JSON knows no NaN and no infinity (a perplexity can overflow): null stands for them."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
