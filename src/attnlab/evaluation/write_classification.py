"""The evaluation folder of a classifier, as plain files.

metrics.json        {name: number or null}
signatures.json     {name: how the number came about}
confusions.json     {"labels": [...], "counts": [[...]]}: row i, column j counts class i taken for class j
predictions.jsonl   a line a sentence, in the split's order
attention.npz       a few sentences' attention, a map of one row each
"""

from __future__ import annotations

from pathlib import Path

from attnlab.evaluation.attention_map import save_maps
from attnlab.evaluation.classify import Classification
from attnlab.evaluation.write import write_json, write_lines


def write_classification(folder: Path, found: Classification) -> None:
    """Write into a folder that is there."""
    write_json(folder / "metrics.json", found.metrics)
    write_json(folder / "signatures.json", found.signatures)
    write_json(folder / "confusions.json", {"labels": found.labels, "counts": found.confusions.tolist()})
    write_lines(folder / "predictions.jsonl", [{**vars(each), "correct": each.correct} for each in found.sentences])
    save_maps(found.maps, folder / "attention.npz")
