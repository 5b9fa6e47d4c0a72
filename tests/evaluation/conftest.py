"""A small corpus to copy, of whose words most are unknown to the tokenizers."""

from __future__ import annotations

import pytest

from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.trainers import WordTrainer


@pytest.fixture(scope="session")
def copies(tmp_path_factory, copy_corpus) -> PreparedData:
    """24 test pairs of 1 to 6 of 8 symbols, 2 of which are in the vocabulary."""
    folder = tmp_path_factory.mktemp("copies") / "data"
    tokenizer = WordTrainer(split="whitespace", vocabulary_size=6, min_frequency=1)
    prepare(copy_corpus(num_symbols=8, test_fraction=0.4, tokenizer=tokenizer), Pairs, folder)
    return PreparedData(folder)
