"""The sentences of a test split with their loss and translation under a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from attnlab.data.prepared import PreparedData
from attnlab.tasks.predictor import ScoredSentences
from attnlab.tasks.translation.translator import Translator

SENTENCES_TOGETHER = 32  # so few that a person who asks in between hardly waits


def score_sentences(translator: Translator, data: PreparedData) -> ScoredSentences:
    """All pairs of the test split, in its order.

    Returns:
        of each pair its `row`, `source`, `reference`, `translation`, `loss` (the mean negative
        log-likelihood of the reference's tokens, `<eos>` included, in nats) and `exact`, whether
        the translation is the reference.
    """
    return ScoredSentences(len(data.split("test")), _batches(translator, data))


def _batches(translator: Translator, data: PreparedData) -> Iterator[list[dict[str, Any]]]:
    split = data.split("test")
    rows = iter(range(len(split)))
    while batch := list(itertools.islice(rows, SENTENCES_TOGETHER)):
        sources = [split.source_text(row) for row in batch]
        references = [split.target_text(row) for row in batch]
        pairs = zip(sources, references, strict=True)
        scored = translator.stream_scores(pairs, batch_size=SENTENCES_TOGETHER)
        translated = translator.stream(sources, with_attention=False, batch_size=SENTENCES_TOGETHER)

        sentences = []
        for row, reading, translation in zip(batch, scored, translated, strict=True):
            reference = references[row - batch[0]]
            sentence = {
                "row": row,
                "source": sources[row - batch[0]],
                "reference": reference,
                "translation": translation.text,
                "loss": -reading.total / len(reading.log_probs),
                "exact": translation.text == reference,
            }
            sentences.append(sentence)
        yield sentences
