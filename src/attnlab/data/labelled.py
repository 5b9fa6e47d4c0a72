"""Sentences with a label each, for the classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from attnlab.data.hub_dataset import HubDataset
from attnlab.data.sentence_cleaning import SentenceCleaning
from attnlab.data.tokenizer import TokenizerTrainer

if TYPE_CHECKING:
    import datasets

Text = Annotated[str, Field(min_length=1)]


class LabelledCorpus:
    """A dataset of the hub, or a local `path` in its place, with a column of text and a column of labels.

    dataset, path, name, revision, splits, seed: see `HubDataset`.
    text, label: columns; a dot goes into a nested one. Labels are whole numbers, true and false, or text. A row
        without a label is dropped.
    label_names: names of the labels 0, 1, ..., in this order; null takes those that the dataset brings with it,
        else the labels as they are written.
    """

    def __init__(
        self,
        dataset: Text | None,
        path: Text | None,
        name: Text | None,
        revision: Text | None,
        splits: dict[str, str | float],
        text: Text,
        label: Text,
        label_names: list[Text] | None,
        seed: Annotated[int, Field(ge=0)],
        cleaning: SentenceCleaning,
        tokenizer: TokenizerTrainer,
    ) -> None:
        if text == label:
            raise ValueError(f"text and label must be two columns, got {text} for both")
        if label_names is not None and (len(label_names) < 2 or len(set(label_names)) < len(label_names)):
            raise ValueError(f"label_names must be at least two different names, got {', '.join(label_names)}")
        if tokenizer.joint:
            raise ValueError("tokenizer.joint must be false: a labelled sentence has no second side to share it with")
        self._rows = HubDataset(dataset, path, name, revision, splits, seed)
        self._columns = {"text": text, "label": label}
        self.label_names, self.cleaning, self.tokenizer = label_names, cleaning, tokenizer

    def load(self) -> dict[str, datasets.Dataset]:
        """A dataset for each of train, validation and test, with the columns `text` and `label`, as they come."""
        return self._rows.load(self._columns)
