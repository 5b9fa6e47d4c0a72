"""What the explorer shows of a translation model: its analyses, and pairs of the test split."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attnlab.data.prepared import PreparedData
from attnlab.tasks.cleaning import cleaned
from attnlab.tasks.predictor import ExplorerPage
from attnlab.tasks.translation.analysis import marks, parts_of, score, translate
from attnlab.tasks.translation.beam_tree import beam
from attnlab.tasks.translation.sentence_losses import score_sentences
from attnlab.tasks.translation.step_numbers import step_numbers
from attnlab.tasks.translation.translator import Translator

MAX_PAIRS = 200  # test pairs that the page offers
ANALYSES: dict[str, Callable[..., Any]] = {
    "translate": translate,
    "score": score,
    "marks": marks,
    "beam": beam,
    "step_numbers": step_numbers,
}


def page_of(translator: Translator) -> ExplorerPage:
    """What the explorer's page shows of a translator."""
    return ExplorerPage(
        kind="translation",
        example=translator.example,
        parts=parts_of(translator),
        analyses=ANALYSES,
        reads=PreparedData,
        pairs=partial(first_pairs, translator),
        score_sentences=partial(score_sentences, translator),
    )


def first_pairs(translator: Translator, data: PreparedData) -> list[dict[str, Any]]:
    """The first pairs of the test split.

    Returns:
        of each pair `source` and `target`, two texts, and `sure` and `possible`, lists of [target
        position, source position]. The lists are empty where the corpus has no alignment, or the
        model splits the texts into other tokens than those which the alignment links.
    """
    split = data.split("test")
    rows = range(min(len(split), MAX_PAIRS))
    sources = [split.source_text(row) for row in rows]
    targets = [split.target_text(row) for row in rows]
    # The model may clean and split its texts in another way than these data were.
    clean_sources = cleaned(sources, translator.cleaning)
    words = translator.source_tokenizer.numbered_words(clean_sources)
    source_ids = translator.source_tokenizer.encode_ids(clean_sources)
    target_ids = translator.target_tokenizer.encode_ids(
        cleaned(targets, translator.cleaning), words
    )

    pairs = []
    for row in rows:
        pair: dict[str, Any] = {
            "source": sources[row],
            "target": targets[row],
            "sure": [],
            "possible": [],
        }
        has_source_tokens = source_ids[row] == split.source[row].tolist()
        has_target_tokens = target_ids[row] == split.target[row].tolist()
        if has_source_tokens and has_target_tokens:
            pair["sure"] = split.links("sure", row).tolist()
            pair["possible"] = split.links("possible", row).tolist()
        pairs.append(pair)
    return pairs
