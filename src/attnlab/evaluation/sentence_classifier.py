"""A model folder that labels text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import torch

from attnlab.batch import Padding
from attnlab.data.padding import Ragged, pad_labelled
from attnlab.data.prepared import read_labels
from attnlab.data.tokenizer import Tokenizer
from attnlab.model.classifier import Classifier
from attnlab.model.model_folder import load_classifier

BATCH_SIZE = 64


class SentenceClassifier:
    """Text to the name of its class, with a trained model and its tokenizer."""

    def __init__(self, model: Classifier, tokenizer: Tokenizer, labels: Sequence[str], padding: Padding) -> None:
        self.model, self.tokenizer, self.labels, self.padding = model, tokenizer, list(labels), padding

    @classmethod
    def load(cls, folder: Path, device: str = "cpu", allow: Collection[str] = ()) -> SentenceClassifier:
        """A classifier from a model folder alone; `allow` and errors as for `load_model`."""
        model = load_classifier(folder, device, allow)
        return cls(model, Tokenizer.load(folder / "tokenizer.json"), read_labels(folder / "data.json"), model.padding)

    def classify(self, texts: Sequence[str]) -> list[str]:
        """The likeliest class of each text, in their order; sentences of like lengths share a batch."""
        ids = self.tokenizer.encode_ids(texts)
        order = np.argsort([len(row) for row in ids], kind="stable")
        device = next(self.model.parameters()).device
        found = [""] * len(texts)
        for start in range(0, len(order), BATCH_SIZE):
            rows = order[start : start + BATCH_SIZE]
            sentences = Ragged.from_rows([ids[row] for row in rows])
            batch = pad_labelled(sentences, np.zeros(len(rows), dtype=np.int64), rows, self.padding).to(device)
            with torch.no_grad():
                numbers = self.model(batch.source, batch.source_mask).log_probabilities.argmax(-1).tolist()
            for row, number in zip(rows.tolist(), numbers, strict=True):
                found[row] = self.labels[number]
        return found
