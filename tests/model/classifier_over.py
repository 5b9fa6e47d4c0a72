"""A classifier over an encoder that is composed of others."""

from __future__ import annotations

from typing import Any

import torch
from tiny_folders import classifier_config

from attnlab.batch import PAD, Padding, SourceBatch
from attnlab.config.binding import bind
from attnlab.config.part import Part
from attnlab.config.target import TARGET
from attnlab.model.classifier import Classifier


def classifier_over(encoder: type, vocabulary: int, parts: dict[str, Part[Any]], **settings: Any):
    """In float64; parts: the encoders that it is composed of, by their names in its config."""
    node = {TARGET: _path_of(encoder), **settings}
    for name, part in parts.items():
        node[name] = {TARGET: _path_of(part.target), **part.values}
    config = classifier_config() | {"encoder": node}
    sizes = {"source_vocabulary_size": vocabulary, "num_classes": 3}
    return bind(config, Classifier, "model")(**sizes, padding=Padding()).double().eval()


def _path_of(target: type) -> str:
    return f"{target.__module__}.{target.__name__}"


def assert_batch_is_as_its_rows(model: Classifier, batch: SourceBatch) -> None:
    """Hold what a classifier gives a batch against what it gives each of its rows alone."""
    together = model(batch.source, batch.source_mask).log_probabilities
    for row in range(len(batch.source)):
        source = batch.source[row][batch.source_mask[row]].unsqueeze(0)
        alone = model(source, source != PAD).log_probabilities
        torch.testing.assert_close(together[row], alone[0], rtol=0, atol=1e-10)
