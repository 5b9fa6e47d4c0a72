"""Models from their folders: a translator, a sentence classifier, and the members of an ensemble."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from attnlab.batch import Padding
from attnlab.data.padding import Ragged, make_batch, pad_labelled
from attnlab.data.prepared import read_labels
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.evaluation.hypotheses import HypothesisText
from attnlab.model.classifier import Classifier
from attnlab.model.model_folder import bind_section, load_classifier, load_model, read_config
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.search import Search

BATCH_SIZE = 64


class Translator:
    """Translates text with a trained model, its tokenizers and a search."""

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        padding: Padding,
        search: Search,
    ) -> None:
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.padding = padding
        self.search = search

    @classmethod
    def load(cls, folder: Path, device: str = "cpu", allow: Collection[str] = ()) -> Translator:
        """A translator from a model folder alone; `allow` and errors as for `load_model`."""
        model = load_model(folder, device, allow)
        return cls(
            model,
            Tokenizer.load(folder / "source_tokenizer.json"),
            Tokenizer.load(folder / "target_tokenizer.json"),
            model.padding,
            bind_section(read_config(folder), "search", Search, allow),
        )

    def translate(self, texts: Sequence[str]) -> list[str]:
        """The best hypothesis of each text, in their order; sentences of similar length share a batch."""
        ids = self.source_tokenizer.encode_ids(texts)
        to_text = HypothesisText(self.source_tokenizer, self.target_tokenizer, self.search.replace_unknown)
        device = next(self.model.parameters()).device
        translations = [""] * len(texts)
        for rows in _batches(ids):
            batch = make_batch([ids[row] for row in rows], [[] for _ in rows], self.padding).to(device)
            with torch.no_grad():
                found = self.search(self.model, batch.source, batch.source_mask, self.search.replace_unknown)
            for row, source, (best, *_) in zip(rows, batch.source, found, strict=True):
                translations[row] = to_text(best, source, texts[row])
        return translations


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
        """The likeliest class of each text, in their order; sentences of similar length share a batch."""
        ids = self.tokenizer.encode_ids(texts)
        device = next(self.model.parameters()).device
        found = [""] * len(texts)
        for rows in _batches(ids):
            sentences = Ragged.from_rows([ids[row] for row in rows])
            no_labels = np.zeros(len(rows), dtype=np.int64)
            batch = pad_labelled(sentences, no_labels, np.array(rows), self.padding).to(device)
            with torch.no_grad():
                numbers = self.model(batch.source, batch.source_mask).log_probabilities.argmax(-1).tolist()
            for row, number in zip(rows, numbers, strict=True):
                found[row] = self.labels[number]
        return found


def _batches(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The rows of each batch, sentences of similar length together."""
    order = np.argsort([len(row) for row in ids], kind="stable").tolist()
    for start in range(0, len(order), BATCH_SIZE):
        yield order[start : start + BATCH_SIZE]


TOKENIZERS = ("source_tokenizer.json", "target_tokenizer.json")


def load_members(
    folder: Path, others: Sequence[Path], device: str = "cpu", allow: Collection[str] = ()
) -> list[Seq2Seq]:
    """The model of a folder, and of others that can form an ensemble with it.

    All need the same tokenizers, because they write one sentence, and padding on the same sides, because they read
    one batch. Masking may differ.

    Raises ExperimentError for a broken folder, or a model that does not match the first.
    """
    for other in others:
        for name in TOKENIZERS:
            if _bytes(folder / name) != _bytes(other / name):
                raise ExperimentError(
                    f"paths.ensemble: the model in {other} has another {name} than the one in {folder}; give models "
                    "that were trained on the same prepared data"
                )
    models = [load_model(each, device, allow) for each in (folder, *others)]
    first = models[0].padding
    for other, model in zip(others, models[1:], strict=True):
        if (model.padding.encoder, model.padding.decoder) != (first.encoder, first.decoder):
            raise ExperimentError(
                f"paths.ensemble: the model in {other} pads source and target {model.padding.encoder} and "
                f"{model.padding.decoder}, the one in {folder} {first.encoder} and {first.decoder}; give models that "
                "pad on the same sides"
            )
    return models


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise ExperimentError(f"{path.parent} must be a whole model folder, but {path.name} is missing")
    return path.read_bytes()
