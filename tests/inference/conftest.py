"""A translator and a classifier of a few units, over a few words."""

from __future__ import annotations

import pytest
import torch
from inference_words import SOURCES, TARGETS

from attnlab.batch import EOS, Padding
from attnlab.data.trainers import WordTrainer
from attnlab.inference.translator import Translator

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
