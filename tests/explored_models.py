"""Tiny models for tests of analyses and for pages of the explorer. Nobody trained them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from attnlab.batch import EOS, Padding
from attnlab.config.part import Part
from attnlab.data.tokenizer import Tokenizer
from attnlab.data.trainers import CharacterTrainer, WordTrainer
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.classifier import Classifier
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.scopes import GlobalScope
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.translation.translator import Translator

# The tabs of a page with translations
TABS = [
    "Heat map",
    "Models",
    "Weights",
    "Patch",
    "Source tokens",
    "Beam",
    "One step",
    "Pads",
    "Reference",
]

SOURCES = ["March 1, 2026", "<b>May</b> 13 & 14", "Sunday"]
TARGETS = ["2026년 3월 1일", "5월 13일 일요일", "<i>월요일"]
BEAM = {
    "_target_": "attnlab.search.beam.BeamSearch",
    "size": 3,
    "length_penalty": 1.0,
    "max_length": 9,
}


def build_character_translator(
    tiny_model: Callable[..., Any],
    search: dict[str, Any] = BEAM,
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
    **choices: Any,
) -> Translator:
    """A translator that writes Korean characters.

    search: a section of the config.
    tokenizers: of source and target, in place of those of SOURCES and TARGETS.
    choices: as `tiny_model` takes them.
    """
    if tokenizers is None:
        trainer = CharacterTrainer(min_frequency=1)
        tokenizers = trainer.train(SOURCES), trainer.train(TARGETS)
    source, target = tokenizers
    sizes = {"source_vocabulary_size": source.size, "target_vocabulary_size": target.size}
    model = tiny_model(**({"scale": 4.0, "dtype": torch.float32} | sizes | choices))
    if hasattr(model.output, "bias"):
        with torch.no_grad():
            model.output.bias[EOS] += 0.3
    return Translator(model, source, target, search)


def build_review_classifier(cell: str = "gru", **parts: Part[Any]) -> SentenceClassifier:
    """A classifier of film reviews.

    cell: of the encoder.
    parts: of its attention, by the names of the classifier's arguments.
    """
    torch.manual_seed(1)
    rates = ("word_dropout", "dropout", "layer_dropout", "output_dropout")
    sizes = {"embedding_size": 5, "hidden_size": 4, "layers": 1} | dict.fromkeys(rates, 0.0)
    way = {"cell": cell, "bidirectional": True, "merge": "concatenate", "reverse_source": False}
    tokenizer = WordTrainer(min_frequency=1).train(["good film", "bad <b> film"])
    usual = {"attention": Part(BahdanauScore, size=5), "projection": None, "heads": None}
    usual |= {"normaliser": Part(Softmax), "scope": Part(GlobalScope)}
    counts = {"source_vocabulary_size": tokenizer.size, "num_classes": 2, "padding": Padding()}
    model = Classifier(
        Part(RecurrentEncoder, **sizes, **way),
        **(usual | parts),
        dense_size=6,
        dropout=0.0,
        **counts,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
    return SentenceClassifier(model.eval(), tokenizer, ["bad", "good"])
