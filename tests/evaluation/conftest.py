"""A small corpus to copy, of whose words most are unknown to the tokenizers."""

from __future__ import annotations

import pytest

from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.toy import CopyCorpus
from attnlab.data.trainers import WordTrainer


@pytest.fixture(scope="session")
def copies(tmp_path_factory) -> PreparedData:
    """24 test pairs of 1 to 6 of 8 symbols, 2 of which are in the vocabulary."""
    folder = tmp_path_factory.mktemp("copies") / "data"
    corpus = CopyCorpus(
        num_pairs=60,
        num_symbols=8,
        min_length=1,
        max_length=6,
        test_min_length=None,
        test_max_length=None,
        validation_fraction=0.1,
        test_fraction=0.4,
        seed=1,
        bleu_tokenize="none",
        tokenizer=WordTrainer(split="whitespace", vocabulary_size=6, min_frequency=1),
    )
    prepare(corpus, folder)
    return PreparedData(folder)
