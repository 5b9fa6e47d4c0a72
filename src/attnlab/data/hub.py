"""Any parallel corpus that `datasets` reads: from the Hugging Face hub, a local folder or files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from babel import Locale, UnknownLocaleError
from pydantic import Field

from attnlab.data.cleaning import Cleaning
from attnlab.data.corpus import BleuTokenize, Corpus
from attnlab.data.hub_dataset import HubDataset
from attnlab.data.tokenizer import TokenizerTrainer

if TYPE_CHECKING:
    import datasets

Text = Annotated[str, Field(min_length=1)]


class HubCorpus(Corpus):
    """A dataset of the hub, or a local `path` in its place.

    dataset, path, name, revision, splits, seed: see `HubDataset`.
    source, target: columns; a dot goes into a nested one (`translation.de`).
    """

    def __init__(
        self,
        dataset: Text | None,
        path: Text | None,
        name: Text | None,
        revision: Text | None,
        splits: dict[str, str | float],
        source: Text,
        target: Text,
        seed: Annotated[int, Field(ge=0)],
        bleu_tokenize: BleuTokenize,
        cleaning: Cleaning,
        tokenizer: TokenizerTrainer,
    ) -> None:
        if source == target:
            raise ValueError(f"source and target must be two columns, got {source} for both")
        self._rows = HubDataset(dataset, path, name, revision, splits, seed)
        self._columns = {"source": source, "target": target}
        self.bleu_tokenize, self.cleaning, self.tokenizer = bleu_tokenize, cleaning, tokenizer
        self.source_language, self.target_language = _language(source), _language(target)

    def load(self) -> dict[str, datasets.Dataset]:
        return self._rows.load(self._columns)


def _language(column: str) -> str | None:
    """`translation.de` -> `de`, where the last part names a language."""
    code = column.rsplit(".", 1)[-1]
    try:
        return str(Locale.parse(code, sep="-" if "-" in code else "_"))
    except (UnknownLocaleError, ValueError, TypeError):
        return None
