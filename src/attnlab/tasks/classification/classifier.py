"""Classify text with a trained model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.batch import LabelledBatch
from attnlab.data.corpus import AS_IT_IS, TextCleaning
from attnlab.data.padding import Ragged, pad_labelled
from attnlab.data.prepared import LabelledData, read_labels
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.model.attention.intervention import Intervention
from attnlab.model.classifier import Classifier
from attnlab.model.fast import speed_up
from attnlab.model.model_folder import load_classifier, read_config
from attnlab.runs.run_folder import ServedModel
from attnlab.tasks.cleaning import cleaned, cleaning_of
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.requests import (
    BATCH_SIZE,
    NO_CHANGE,
    check_attention,
    check_sources,
    check_steps,
    notebook_frame,
    rows_by_length,
    windows,
)


@dataclass(frozen=True, eq=False)
class ClassifiedText:
    """The classes that a model predicts for a text.

    text: as it was given.
    probabilities, log_probabilities: of every class, by its name.
    tokens: S tokens of the cleaned text, as the model read it, the last one `<eos>`.
    attention: (S,) float32, the weight of each token, the mean over the heads.
    """

    text: str
    probabilities: dict[str, float]
    log_probabilities: dict[str, float] = field(repr=False)
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
        from attnlab.plots.sentences import sentences_html  # costs an import of matplotlib

        lines = len(self.text) // 80
        return notebook_frame(sentences_html([self.map], title=None), height=100 + 35 * lines)


class SentenceClassifier(Predictor):
    """A trained model with its tokenizer: `classifier("a good film").label`.

    cleaning: of the corpus that the model was trained on. Its limits of length drop no text here.
    config: that the model was trained with, where it is known.
    """

    does = "classifies"
    commands = ("classify",)
    served = ServedModel(
        "classifier",
        answer={
            "label": "string",
            "probabilities": {"*": "double"},
            "tokens?": ["string"],
            "attention?": ["double"],
        },
    )

    def __init__(
        self,
        model: Classifier,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        cleaning: TextCleaning = AS_IT_IS,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.labels = list(labels)
        self.cleaning = cleaning
        self.config = config

    @classmethod
    def load(
        cls, folder: Path, device: str = "cpu", allow: Collection[str] = ()
    ) -> SentenceClassifier:
        """A classifier from a model folder alone; `allow` and errors as for `load_model`."""
        model = speed_up(load_classifier(folder, device, allow))
        config = read_config(folder)
        return cls(
            model=model,
            tokenizer=Tokenizer.load(folder / "tokenizer.json"),
            labels=read_labels(folder / "data.json"),
            cleaning=cleaning_of(config, allow),
            config=config,
        )

    @classmethod
    def of_data(
        cls,
        model: Classifier,
        data: LabelledData,
        search: Mapping[str, Any] | None,
        cleaning: TextCleaning,
    ) -> SentenceClassifier:
        return cls(model, data.tokenizer, data.labels, cleaning)

    @property
    def source_tokenizer(self) -> Tokenizer:
        return self.tokenizer

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
        not a text.
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
        """Classify one text after the other, in their order and in steady memory.

        Arguments and errors as for calling it, and:

        batch_size: sentences that go through the model together. The stream reads `WINDOW` batches
            ahead; with 1 it reads no farther than the sentence that it classifies.
        """
        if intervene is None:
            intervene = NO_CHANGE
        self.check_intervention(intervene)
        for window in windows(texts, batch_size):
            ids = self.tokenizer.encode_ids(cleaned(window, self.cleaning))
            found: dict[int, ClassifiedText] = {}
            for rows in rows_by_length(ids, batch_size):
                batch = self._batch([ids[row] for row in rows])
                check_sources(intervene, batch)
                with torch.no_grad():
                    output = self.model(batch.source, batch.source_mask, intervene)
                probabilities = output.log_probabilities.exp().tolist()
                log_probabilities = output.log_probabilities.tolist()
                for i, row in enumerate(rows):
                    real = batch.source_mask[i]
                    found[row] = ClassifiedText(
                        text=window[row],
                        probabilities=dict(zip(self.labels, probabilities[i], strict=True)),
                        log_probabilities=dict(zip(self.labels, log_probabilities[i], strict=True)),
                        tokens=self.tokenizer.tokens(batch.source[i][real].tolist()),
                        attention=output.attention_weights[i][real].float().cpu().numpy(),
                    )
            for row in range(len(window)):
                yield found[row]

    def plain_answers(
        self, texts: Sequence[str], attention: bool = False, **settings: Any
    ) -> list[dict[str, Any]]:
        answers = self.stream(texts, **settings)
        return [plain_classification(answer, attention) for answer in answers]

    def check_intervention(self, intervention: Intervention) -> None:
        """Raise ExperimentError for an intervention that no classifier can have.

        It attends once and writes nothing.
        """
        if intervention.force:
            raise ExperimentError("force: a classifier writes no tokens that could be forced")
        if intervention.patch is not None:
            raise ExperimentError("intervene: patch goes with models that translate alone")
        check_attention(intervention, self.model.attention)
        check_steps(intervention, 1)

    def _batch(self, sentences: list[list[int]]) -> LabelledBatch:
        """Sentences on the model's device, each with the label 0, since nothing reads labels."""
        count = len(sentences)
        no_labels = np.zeros(count, dtype=np.int64)
        batch = pad_labelled(Ragged.from_rows(sentences), no_labels, np.arange(count), self.padding)
        return batch.to(next(self.model.parameters()).device)


def plain_classification(answer: ClassifiedText, attention: bool = False) -> dict[str, Any]:
    """`label` and `probabilities`, by class.

    With attention also `tokens` and `attention`, a weight for each token.
    """
    plain: dict[str, Any] = {"label": answer.label, "probabilities": answer.probabilities}
    if attention:
        plain["tokens"] = answer.tokens
        plain["attention"] = answer.attention.tolist()
    return plain
