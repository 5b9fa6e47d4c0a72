"""Model folders of a few units that nobody trained, and the data that they would be trained on."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from attnlab.batch import EOS, Padding
from attnlab.config.binding import bind
from attnlab.data.trainers import WordTrainer
from attnlab.experiment.composition import compose
from attnlab.model.classifier import Classifier
from attnlab.model.model_folder import ModelFacts, save_model
from attnlab.model.seq2seq import Seq2Seq

SOURCES = ["나는 학교 에 간다", "나는 집 에 간다", "학교 <b>"]
TARGETS = ["i go to school", "i go home"]
TINY = ["model.encoder.embedding_size=4", "model.encoder.hidden_size=4", "model.attention.size=4"]


def write_translator(folder: Path) -> Path:
    """A model that translates Korean words, with beam search of size 2."""
    config = compose([*TINY, "model.decoder.hidden_size=8", "model.readout.size=8", "search.size=2"]).logged
    trainer, data = WordTrainer(min_frequency=1), folder.with_name("data")
    data.mkdir()
    source, target = trainer.train(SOURCES), trainer.train(TARGETS)
    source.save(data / "source_tokenizer.json")
    target.save(data / "target_tokenizer.json")
    (data / "data.json").write_text("{}")
    torch.manual_seed(1)
    part = bind(config["model"], Seq2Seq, "model")
    model = part(source_vocabulary_size=source.size, target_vocabulary_size=target.size, padding=Padding())
    with torch.no_grad():
        model.output.bias[EOS] += 2.0
    facts = ModelFacts(source.size, "f" * 16, 7, target_vocabulary_size=target.size)
    save_model(folder, model.state_dict(), config, facts, data)
    return folder


def write_classifier(folder: Path) -> Path:
    """A model of three classes."""
    config = compose([*TINY, "task=classification", "data.path=none", "data.label_names=[a,b,c]"]).logged
    data = folder.with_name("data")
    data.mkdir()
    tokenizer = WordTrainer(min_frequency=1).train(SOURCES)
    tokenizer.save(data / "tokenizer.json")
    (data / "data.json").write_text(json.dumps({"format": 2, "labels": ["일상", "이별", "love"]}))
    torch.manual_seed(1)
    model = bind(config["model"], Classifier, "model")(
        source_vocabulary_size=tokenizer.size, num_classes=3, padding=Padding()
    )
    save_model(folder, model.state_dict(), config, ModelFacts(tokenizer.size, "f" * 16, 7, num_classes=3), data)
    return folder
