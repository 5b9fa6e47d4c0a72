"""A trained tagger that one can ask."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.data.corpus import TextCleaning
from attnlab.data.padding import Ragged
from attnlab.data.tokenizer import Tokenizer
from attnlab.files import read_own_record
from attnlab.model.fast import speed_up
from attnlab.model.model_folder import load_model, read_config
from attnlab.runs.run_folder import ServedModel
from attnlab.tasks.cleaning import cleaned, cleaning_of
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.requests import BATCH_SIZE, windows
from lab_extras.tagging.data import TaggedData, TagInfo, pad_tagged
from lab_extras.tagging.model import Tagger


@dataclass(frozen=True, eq=False)
class TaggedText:
    """A text with its tags. tokens: S words and `<eos>`; attention: (S, S)."""

    text: str
    tags: list[str]
    tokens: list[str]
    attention: NDArray[np.float32] = field(repr=False)


class SentenceTagger(Predictor):
    """A trained model with its tokenizer: `tagger("a b").tags`."""

    does = "tags"
    served = ServedModel("tagger", answer={"tags": ["string"], "tokens?": ["string"]})

    def __init__(
        self,
        model: Tagger,
        tokenizer: Tokenizer,
        tags: Sequence[str],
        cleaning: TextCleaning,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.tags = list(tags)
        self.cleaning = cleaning
        self.config = config

    @classmethod
    def load(cls, folder: Path, device: str = "cpu", allow: Collection[str] = ()) -> SentenceTagger:
        config = read_config(folder)
        info = read_own_record(folder / "data.json", TagInfo, "take a whole folder")
        return cls(
            model=speed_up(load_model(folder, device, allow, kind=Tagger)),
            tokenizer=Tokenizer.load(folder / "tokenizer.json"),
            tags=info.tags,
            cleaning=cleaning_of(config, allow),
            config=config,
        )

    @classmethod
    def of_data(
        cls, model: Any, data: TaggedData, search: Any, cleaning: TextCleaning
    ) -> SentenceTagger:
        return cls(model, data.tokenizer, data.info.tags, cleaning)

    @property
    def source_tokenizer(self) -> Tokenizer:
        return self.tokenizer

    def __call__(self, texts: str | list[str]) -> TaggedText | list[TaggedText]:
        """Tag one text, or a list of texts."""
        if isinstance(texts, str):
            return next(self.stream([texts]))
        return list(self.stream(texts))

    def stream(self, texts: Iterable[str]) -> Iterator[TaggedText]:
        for window in windows(texts, BATCH_SIZE):
            for start in range(0, len(window), BATCH_SIZE):
                yield from self._tagged(window[start : start + BATCH_SIZE])

    @torch.no_grad()
    def _tagged(self, texts: list[str]) -> Iterator[TaggedText]:
        ids = Ragged.from_rows(self.tokenizer.encode_ids(cleaned(texts, self.cleaning)))
        no_tags = np.zeros(len(ids.values), dtype=np.int64)
        batch = pad_tagged(ids, no_tags, np.arange(len(texts)), self.padding)
        batch = batch.to(next(self.model.parameters()).device)
        found = self.model(batch.source, batch.source_mask)
        for i, text in enumerate(texts):
            real = batch.source_mask[i]
            numbers = found.log_probabilities[i, real].argmax(-1).tolist()
            yield TaggedText(
                text=text,
                tags=[self.tags[number] for number in numbers[:-1]],  # none for <eos>
                tokens=self.tokenizer.tokens(batch.source[i, real].tolist()),
                attention=found.attention_weights[i][real][:, real].float().cpu().numpy(),
            )

    def plain_answers(
        self, texts: Sequence[str], attention: bool = False, **settings: Any
    ) -> list[dict[str, Any]]:
        plain = []
        for answer in self.stream(texts):
            more = {"tokens": answer.tokens} if attention else {}
            plain.append({"tags": answer.tags, **more})
        return plain
