"""From a model folder to an object that one can ask."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from attnlab.inference.classifier import SentenceClassifier
from attnlab.inference.translator import Translator
from attnlab.model.model_folder import read_facts


def load_folder(folder: Path, device: str = "cpu", allow: Collection[str] = ()) -> Translator | SentenceClassifier:
    """The translator or the classifier of a model folder; `allow` and errors as for `load_model`."""
    kind = Translator if read_facts(folder).num_classes is None else SentenceClassifier
    return kind.load(folder, device, allow)
