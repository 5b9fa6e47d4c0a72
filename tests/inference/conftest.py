"""A translator of a few units, over a few words, and model folders of a translator and a classifier."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from composed_variants import Variant, config_of
from inference_words import LABELS, SOURCES, TARGETS

from attnlab.batch import EOS, Padding
from attnlab.config.binding import bind
from attnlab.data.trainers import CharacterTrainer, WordTrainer
from attnlab.inference.translator import Translator
from attnlab.model.classifier import Classifier
from attnlab.model.model_folder import ModelFacts, save_model
from attnlab.model.seq2seq import Seq2Seq

BEAM = {"_target_": "attnlab.search.beam.BeamSearch", "size": 2, "length_penalty": 1.0, "max_length": 7}


@pytest.fixture
def translator(tiny_model):
    """Builds one; choices as for `tiny_model`, and `search`, a section of the config."""
    trainer = WordTrainer(min_frequency=1)
    source, target = trainer.train(SOURCES), trainer.train(TARGETS)

    def build(search=BEAM, padding: Padding = Padding(), **choices) -> Translator:  # noqa: B008 (frozen)
        sizes = {"source_vocabulary_size": source.size, "target_vocabulary_size": target.size}
        model = tiny_model(**({"scale": 4.0, "dtype": torch.float32, "padding": padding} | sizes | choices))
        with torch.no_grad():
            model.output.bias[EOS] += 2.0
        return Translator(model, source, target, search)

    return build


PADDING = {
    "_target_": "attnlab.batch.Padding",
    "encoder": "pre",
    "decoder": "post",
    "attention_masked": True,
    "recurrence": "skip",
}


def save(folder: Path, kind: type, model: dict[str, Any], search: Any, **sizes: int) -> Path:
    """An untrained model with clear preferences, as a folder; the tokenizers lie beside it already."""
    torch.manual_seed(1)
    weights = bind(model, kind, "model")(**sizes, padding=Padding("pre")).state_dict()
    louder = {name: 3 * tensor for name, tensor in weights.items()}
    facts = ModelFacts(**sizes, identity="i" * 16, step=1)
    save_model(folder, louder, {"model": model, "padding": PADDING, "search": search}, facts, folder.parent)
    return folder


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory) -> Path:
    """Words to characters, a line break among them."""
    folder = tmp_path_factory.mktemp("translator")
    source = WordTrainer(min_frequency=1).train(SOURCES)
    target = CharacterTrainer(min_frequency=1).train(["go to school", "a\nb"])
    source.save(folder / "source_tokenizer.json")
    target.save(folder / "target_tokenizer.json")
    (folder / "data.json").write_text("{}")
    sizes = {"source_vocabulary_size": source.size, "target_vocabulary_size": target.size}
    model = config_of(Variant("decoder", "attend_then_step"))
    return save(folder / "model", Seq2Seq, model, {**BEAM, "max_length_ratio": None}, **sizes)


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    tokenizer = WordTrainer(min_frequency=1).train(SOURCES)
    tokenizer.save(folder / "tokenizer.json")
    (folder / "data.json").write_text(json.dumps({"format": 2, "labels": LABELS}))
    parts = config_of(Variant("attention", "bahdanau"))
    model = {name: parts[name] for name in ("encoder", "attention", "projection", "normaliser", "scope", "heads")}
    model |= {"_target_": "attnlab.model.classifier.Classifier", "dense_size": 6, "dropout": 0.0}
    sizes = {"source_vocabulary_size": tokenizer.size, "num_classes": len(LABELS)}
    return save(folder / "model", Classifier, model, None, **sizes)
