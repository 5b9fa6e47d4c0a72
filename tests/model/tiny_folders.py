"""Model folders of a few units that nobody trained."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from composed_variants import Variant, config_of

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.data.trainers import CharacterTrainer, WordTrainer
from attnlab.model.classifier import Classifier
from attnlab.model.model_folder import ModelFacts, save_model
from attnlab.model.seq2seq import Seq2Seq

SOURCES = [
    "나는 학교 에 간다",
    "나는 집 에 간다",
    "학교",
    "집 에 나는 <b>",
    "간다 간다 간다 간다 간다 간다",
]
TARGETS = ["i go to school", "i go home", "school & home"]
LABELS = ["일상", "이별", "love"]
BEAM = {
    "_target_": "attnlab.search.beam.BeamSearch",
    "size": 2,
    "length_penalty": 1.0,
    "max_length": 7,
}
PADDING = {
    "_target_": "attnlab.batch.Padding",
    "encoder": "pre",
    "decoder": "post",
    "attention_masked": True,
    "recurrence": "skip",
}


CLEANING = {"_target_": "attnlab.data.corpus.Cleaning", "unicode": "nfc", "whitespace": "collapse"}
# What users give for one of SOURCES, by where it comes from; the data of a model with CLEANING hold
# none of them.
FORMS: dict[str, Callable[[str], str]] = {
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "double spaces": lambda text: text.replace(" ", "  "),
    "spaces around": lambda text: f"\u2003{text} \u3000\r",
    "byte order mark": lambda text: "\ufeff" + text,
}


def save(
    folder: Path,
    kind: type,
    model: dict[str, Any],
    search: Any,
    cleaning: dict[str, Any] | None,
    **sizes: int,
) -> Path:
    """An untrained model with clear preferences, as a folder.

    The tokenizers lie beside it already.
    """
    torch.manual_seed(1)
    weights = bind(model, kind, "model")(**sizes, padding=Padding("pre")).state_dict()
    louder = {name: 3 * tensor for name, tensor in weights.items()}
    facts = ModelFacts(identity="i" * 16, step=1, sizes=sizes)
    config = {"model": model, "padding": PADDING, "search": search}
    if cleaning is not None:
        config["data"] = {"cleaning": cleaning}
    save_model(folder, louder, config, facts, sorted(folder.parent.glob("*.json")))
    return folder


def write_translator(
    folder: Path, source: TokenizerTrainer | None = None, cleaning: dict[str, Any] | None = None
) -> Path:
    """A model folder inside `folder`, from words to characters, a line break among them.

    source: what makes other tokens of the words.

    cleaning: what its config has as `data.cleaning`.
    """
    source = (source or WordTrainer(min_frequency=1)).train(SOURCES)
    target = CharacterTrainer(min_frequency=1).train(["go to school", "a\nb"])
    source.save(folder / "source_tokenizer.json")
    target.save(folder / "target_tokenizer.json")
    (folder / "data.json").write_text("{}")
    sizes = {"source_vocabulary_size": source.size, "target_vocabulary_size": target.size}
    model = config_of(Variant("decoder", "attend_then_step"))
    return save(
        folder / "model", Seq2Seq, model, {**BEAM, "max_length_ratio": None}, cleaning, **sizes
    )


def write_classifier(folder: Path, cleaning: dict[str, Any] | None = None) -> Path:
    """A model folder inside `folder`, of three classes; `cleaning` as for `write_translator`."""
    tokenizer = WordTrainer(min_frequency=1).train(SOURCES)
    tokenizer.save(folder / "tokenizer.json")
    (folder / "data.json").write_text(json.dumps({"format": 2, "labels": LABELS}))
    sizes = {"source_vocabulary_size": tokenizer.size, "num_classes": len(LABELS)}
    return save(folder / "model", Classifier, classifier_config(), None, cleaning, **sizes)


def classifier_config() -> dict[str, Any]:
    parts = config_of(Variant("attention", "bahdanau"))
    model = {
        name: parts[name]
        for name in ("encoder", "attention", "projection", "normaliser", "scope", "heads")
    }
    return model | {
        "_target_": "attnlab.model.classifier.Classifier",
        "dense_size": 6,
        "dropout": 0.0,
    }
