"""A tiny translator over a few words."""

from __future__ import annotations

import pytest
import torch
from tiny_folders import BEAM, SOURCES, TARGETS

from attnlab.batch import EOS, Padding
from attnlab.data.trainers import WordTrainer
from attnlab.tasks.translation.translator import Translator


@pytest.fixture
def translator(tiny_model):
    """Builds one; choices as for `tiny_model`, and `search`, a section of the config."""
    trainer = WordTrainer(min_frequency=1)
    source, target = trainer.train(SOURCES), trainer.train(TARGETS)

    def build(search=BEAM, padding: Padding = Padding(), **choices) -> Translator:  # noqa: B008 (frozen)
        sizes = {"source_vocabulary_size": source.size, "target_vocabulary_size": target.size}
        model = tiny_model(
            **({"scale": 4.0, "dtype": torch.float32, "padding": padding} | sizes | choices)
        )
        with torch.no_grad():
            model.output.vocabulary.bias[EOS] += 2.0
        return Translator(model, source, target, search)

    return build
