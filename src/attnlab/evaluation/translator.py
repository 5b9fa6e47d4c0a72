"""A model folder that translates text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import torch

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.data.tokenizer import Tokenizer
from attnlab.evaluation.hypothesis_text import HypothesisText
from attnlab.model.model_folder import bind_section, load_model, read_config
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.search import Search

BATCH_SIZE = 64


class Translator:
    """Text to text, with a trained model, its tokenizers and a search."""

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
        """The best hypothesis of each text, in their order; sentences of like lengths share a batch."""
        ids = self.source_tokenizer.encode_ids(texts)
        to_text = HypothesisText(self.source_tokenizer, self.target_tokenizer, self.search.replace_unknown)
        order = np.argsort([len(row) for row in ids], kind="stable").tolist()
        device = next(self.model.parameters()).device
        translations = [""] * len(texts)
        for start in range(0, len(order), BATCH_SIZE):
            rows = order[start : start + BATCH_SIZE]
            batch = make_batch([ids[row] for row in rows], [[] for _ in rows], self.padding).to(device)
            with torch.no_grad():
                found = self.search(self.model, batch.source, batch.source_mask, self.search.replace_unknown)
            for row, source, (best, *_) in zip(rows, batch.source, found, strict=True):
                translations[row] = to_text(best, source, texts[row])
        return translations
