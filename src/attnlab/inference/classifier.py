"""Classify text with a trained model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.data.corpus import AS_IT_IS, TextCleaning
from attnlab.data.padding import Ragged, pad_labelled
from attnlab.data.prepared import read_labels
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.inference.cleaning import cleaned, cleaning_of
from attnlab.inference.requests import (
    BATCH_SIZE,
    NO_CHANGE,
    check_sources,
    check_steps,
    framed,
    rows_by_length,
    windows,
)
from attnlab.model.attention.intervention import Intervention
from attnlab.model.classifier import Classifier
from attnlab.model.model_folder import load_classifier, read_config


@dataclass(frozen=True, eq=False)
class ClassifiedText:
    """What a model takes a text for.

    text: as it was given.
    probabilities: of every class, by its name.
    tokens: S tokens of the cleaned text, as the model read it, the last one `<eos>`.
    attention: (S,) float32, the weight of each token, the mean over the heads.
    """

    text: str
    probabilities: dict[str, float]
    tokens: list[str]
    attention: NDArray[np.float32] = field(repr=False)

    @property
    def label(self) -> str:
        """The likeliest class."""
        return max(self.probabilities, key=lambda name: self.probabilities[name])

    @property
    def map(self) -> AttentionMap:
        """The attention with its tokens, to draw: one row."""
        title = f"{self.label} ({self.probabilities[self.label]:.2f})"
        return AttentionMap(self.tokens, [self.label], self.attention[None], title)

    def _repr_html_(self) -> str:
        from attnlab.plots.attention import sentences_html  # costs an import of matplotlib

        return framed(sentences_html([self.map], title=None), 100 + 35 * (len(self.text) // 80))


class SentenceClassifier:
    """A trained model with its tokenizer: `classifier("a good film").label`.

    cleaning: as of a `Translator`.
    config: that the model was trained with, where it is known.
    """

    def __init__(
        self,
        model: Classifier,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        cleaning: TextCleaning = AS_IT_IS,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.config = config
        self.model, self.tokenizer, self.labels, self.padding = (
            model,
            tokenizer,
            list(labels),
            model.padding,
        )
        self.cleaning = cleaning

    @classmethod
    def load(
        cls, folder: Path, device: str = "cpu", allow: Collection[str] = ()
    ) -> SentenceClassifier:
        """A classifier from a model folder alone; `allow` and errors as for `load_model`."""
        model = load_classifier(folder, device, allow)
        tokenizer, labels = (
            Tokenizer.load(folder / "tokenizer.json"),
            read_labels(folder / "data.json"),
        )
        config = read_config(folder)
        return cls(model, tokenizer, labels, cleaning_of(config, allow), config)

    @overload
    def __call__(self, texts: str, *, intervene: Intervention | None = None) -> ClassifiedText: ...
    @overload
    def __call__(
        self, texts: list[str] | tuple[str, ...], *, intervene: Intervention | None = None
    ) -> list[ClassifiedText]: ...
    def __call__(
        self, texts: str | list[str] | tuple[str, ...], *, intervene: Intervention | None = None
    ) -> ClassifiedText | list[ClassifiedText]:
        """Classify one text, or a list of texts.

        intervene: changes the attention; its one step is 0.

        Raises ExperimentError for an intervention that does not fit the sentence, and for what is
        no text.
        """
        if isinstance(texts, str):
            return next(self.stream([texts], intervene))
        return list(self.stream(texts, intervene))

    def stream(
        self,
        texts: Iterable[str],
        intervene: Intervention | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> Iterator[ClassifiedText]:
        """As calling it, one text after the other in their order, in steady memory; as
        `Translator.stream`.
        """
        intervene = NO_CHANGE if intervene is None else intervene
        check_one_look(intervene)
        device = next(self.model.parameters()).device
        for window in windows(texts, batch_size):
            ids = self.tokenizer.encode_ids(cleaned(window, self.cleaning))
            found: dict[int, ClassifiedText] = {}
            for rows in rows_by_length(ids, batch_size):
                sentences = Ragged.from_rows([ids[row] for row in rows])
                no_labels = np.zeros(len(rows), dtype=np.int64)
                batch = pad_labelled(sentences, no_labels, np.array(rows), self.padding).to(device)
                check_sources(intervene, batch)
                with torch.no_grad():
                    output = self.model(batch.source, batch.source_mask, intervene)
                probabilities = output.log_probabilities.exp().tolist()
                for i, row in enumerate(rows):
                    real = batch.source_mask[i]
                    found[row] = ClassifiedText(
                        text=window[row],
                        probabilities=dict(zip(self.labels, probabilities[i], strict=True)),
                        tokens=self.tokenizer.tokens(batch.source[i][real].tolist()),
                        attention=output.attention_weights[i][real].float().cpu().numpy(),
                    )
            yield from (found[row] for row in range(len(window)))


def check_one_look(intervention: Intervention) -> None:
    """Raise ExperimentError for an intervention that a classifier, which looks once and writes
    nothing, cannot have.
    """
    if intervention.force:
        raise ExperimentError("force: a classifier writes no tokens that could be forced")
    check_steps(intervention, 1)
