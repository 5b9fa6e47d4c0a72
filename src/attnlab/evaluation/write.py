"""The evaluation folder: what a trained model did on a split, as plain files.

metrics.json       {name: number or null}
signatures.json    {name: how the number came about}
attention.npz      a few sentences' attention maps; of a classifier, maps of one row each

Of a translation:
hypotheses.jsonl   a line for each sentence, in the split's order; with `n_best` where several hypotheses were requested
by_length.json     quality by source length
alignment_offsets.json  how far from the right token the attention looked; empty without known alignments
wrong_links.json   the target tokens whose attention misses their links; empty without known alignments

Of a classification:
confusions.json    {"labels": [...], "counts": [[...]]}: row i, column j counts class i taken for class j
predictions.jsonl  a line for each sentence, in the split's order
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.classify import Classification
from attnlab.files import atomic_folder, write_json, write_json_lines


@dataclass(frozen=True)
class DecodedSentence:
    """One sentence of the split and its hypotheses.

    score: the search's score of the hypothesis.
    source_length: in tokens, `<eos>` not counted.
    n_best: texts and scores of the best hypotheses, the best first; None where only one was requested.
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
        write_json_lines(temporary / "hypotheses.jsonl", [_row(sentence) for sentence in sentences])
        save_maps(maps, temporary / "attention.npz")


def _row(sentence: DecodedSentence) -> dict[str, Any]:
    row = {**vars(sentence), "exact": sentence.exact}
    n_best = row.pop("n_best")
    if n_best is not None:
        row["n_best"] = [{"hypothesis": text, "score": score} for text, score in n_best]
    return row


def write_classification(folder: Path, found: Classification) -> None:
    """Write the evaluation of a classifier into an existing folder."""
    write_json(folder / "metrics.json", found.metrics)
    write_json(folder / "signatures.json", found.signatures)
    write_json(folder / "confusions.json", {"labels": found.labels, "counts": found.confusions.tolist()})
    write_json_lines(
        folder / "predictions.jsonl", [{**vars(each), "correct": each.correct} for each in found.sentences]
    )
    save_maps(found.maps, folder / "attention.npz")
