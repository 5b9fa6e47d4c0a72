"""Sentence pairs of a corpus with their references and gold alignments, to look at a model's attention beside."""

from __future__ import annotations

from typing import Any

from attnlab.data.prepared import PreparedData
from attnlab.inference.translator import Translator

MOST_PAIRS = 200


def first_pairs(translator: Translator, data: PreparedData) -> list[dict[str, Any]]:
    """The first pairs of the test split.

    Returns:
        of each pair `source` and `target`, two texts, and `sure` and `possible`, lists of [target position, source
        position]. The lists are empty where the corpus has no alignment, or the model splits the texts into other
        tokens than those which the alignment links.
    """
    split = data.split("test")
    rows = range(min(len(split), MOST_PAIRS))
    sources, targets = [split.source_text(row) for row in rows], [split.target_text(row) for row in rows]
    read = translator.source_tokenizer.encode_ids(sources), translator.target_tokenizer.encode_ids(targets)
    pairs = []
    for row in rows:
        pair: dict[str, Any] = {"source": sources[row], "target": targets[row], "sure": [], "possible": []}
        if (read[0][row], read[1][row]) == (split.source[row].tolist(), split.target[row].tolist()):
            pair |= {kind: split.links(kind, row).tolist() for kind in ("sure", "possible")}
        pairs.append(pair)
    return pairs
