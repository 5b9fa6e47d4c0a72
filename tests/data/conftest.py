"""Small corpora on disk and their constructors, shared by the tests of the data package."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.data.corpus import Cleaning
from attnlab.data.dates import DatesCorpus
from attnlab.data.hub import HubCorpus
from attnlab.data.trainers import CharacterTrainer, WordTrainer

Rows = list[dict[str, Any]]
SENTENCES: Rows = [
    {"de": "Ein Hund läuft.", "en": "A dog runs."},
    {"de": "Zwei Hunde laufen!", "en": "Two dogs run!"},
    {"de": "Ein Hund schläft.", "en": "A dog sleeps."},
    {"de": "Die Katze schläft.", "en": "The cat sleeps."},
    {"de": "Die Katze läuft.", "en": "The cat runs."},
]


@pytest.fixture
def hub_folder(tmp_path: Path) -> Path:
    """A folder in the layout of a dataset repository: three gzipped files of JSON lines."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split, rows in (
        ("train", SENTENCES * 4),
        ("validation", SENTENCES[:2]),
        ("test", SENTENCES[2:]),
    ):
        with gzip.open(folder / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return folder


@pytest.fixture
def hub_corpus() -> Callable[..., HubCorpus]:
    def make(path: Path | str | None, **changed: Any) -> HubCorpus:
        values: dict[str, Any] = {
            "dataset": None,
            "path": None if path is None else str(path),
            "name": None,
            "revision": None,
            "splits": {"train": "train", "validation": "validation", "test": "test"},
            "source": "de",
            "target": "en",
            "alignments": None,
            "possible_alignments": None,
            "first_word": 0,
            "rouge": None,
            "seed": 1,
            "limit": None,
            "columns": None,
            "separator": None,
            "encoding": None,
            "bleu_tokenize": "13a",
            "cleaning": Cleaning(),
            "tokenizer": WordTrainer(min_frequency=1),
        }
        return HubCorpus(**(values | changed))

    return make


@pytest.fixture
def dates() -> Callable[..., DatesCorpus]:
    def make(**changed: Any) -> DatesCorpus:
        values: dict[str, Any] = {
            "source_locales": ["en_US", "de_DE", "fr_FR", "es_ES", "ja_JP"],
            "target_locale": "ko_KR",
            "formats": ["full"],
            "first_year": 1900,
            "last_year": 2099,
            "num_pairs": 300,
            "validation_fraction": 0.1,
            "test_fraction": 0.1,
            "seed": 1,
            "bleu_tokenize": "char",
            "tokenizer": CharacterTrainer(),
        }
        return DatesCorpus(**(values | changed))

    return make
