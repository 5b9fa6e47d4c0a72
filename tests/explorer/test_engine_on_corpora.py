"""The engine on many sentences of trained models: dates, and the lessons' Korean sentences.

Python translates them in batches, as `attnlab translate` does; tests/explorer/test_engine.py
compares all else that the explorer asks, one sentence at a time.
"""

from __future__ import annotations

import os
import subprocess
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from engine_in_node import TOLERANCE, assert_engine_answers_as_python, engine_in_node

from attnlab import load
from attnlab.batch import UNK
from attnlab.data.prepared import PreparedData

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = int(os.environ.get("ATTNLAB_SENTENCES", "200"))  # of each corpus, at most
CORPORA = {
    "dates_into_korean": ("data=dates", "data.num_pairs=2000"),
    "dates_out_of_korean": (
        "data=dates",
        "data.num_pairs=2000",
        "data.source_locales=[ko_KR]",
        "data.target_locale=en_US",
        "data/tokenizer=word",
        "model/attention=general",
        "model/decoder=step_then_attend",
        "model.encoder.cell=lstm",
    ),
    "korean_sentences": (
        "data=lesson_ko_en",
        "data.num_pairs=1050",
        "model/attention=concat",
        "search.coverage_penalty=0.2",
    ),
}
# Enough steps that the models write sentences, if not always the right ones.
SHORT = (
    "training.max_steps=120",
    "training.validate_every=120",
    "tracking=none",
    "chain=false",
)
SEARCHES = {"greedy": {"search": "greedy"}, "beam": {"beam": 3}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, warm_python):
    """Trains the model of a corpus, once; returns it and its prepared data."""
    models = {}

    def model_of(corpus):
        if corpus not in models:
            models[corpus] = train(tmp_path_factory.mktemp(corpus), CORPORA[corpus], warm_python)
        return models[corpus]

    return model_of


def train(folder, choices, python):
    command = [python, ROOT / "pipelines" / "train.py", *choices, *SHORT]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    (record,) = folder.glob("runs/points/*/model/model.json")
    (data,) = folder.glob("runs/data/*/data.json")
    return load(record.parent), PreparedData(data.parent)


@pytest.fixture(scope="module")
def engine():
    with engine_in_node() as started:
        yield started


def sources_of(data):
    """All source texts of a corpus, no text twice."""
    texts = []
    for name in ("test", "validation", "train"):
        split = data.split(name)
        texts += [split.source_text(row) for row in range(len(split))]
    return list(dict.fromkeys(texts))


def written_otherwise(text, number):
    """A text as a person may type it, in one of several ways."""
    words = text.split()
    ways = (
        unicodedata.normalize("NFD", text),  # as macOS writes the names of files
        unicodedata.normalize("NFKC", text).upper(),
        "\u3000".join(words),
        f"\ufeff  {text}\t\u00a0",
        f"“{text}”…",
        text.replace(" ", ", "),
        f"{text} 외계인",
        " ".join(reversed(words)),
    )
    return ways[number % len(ways)]


@pytest.mark.slow
@pytest.mark.parametrize("search", ["greedy", pytest.param("beam", marks=pytest.mark.long)])
@pytest.mark.parametrize("corpus", CORPORA)
def test_sentences_have_the_tokens_and_weights_of_python(corpus, search, trained, engine):
    model, data = trained(corpus)
    texts = sources_of(data)[:SENTENCES]
    assert len(texts) == SENTENCES
    compare(engine, model, texts, SEARCHES[search], corpus)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("corpus", CORPORA)
def test_sentences_typed_in_other_ways_are_read_as_by_python(corpus, search, trained, engine):
    model, data = trained(corpus)
    texts = sources_of(data)[:200]
    typed = [written_otherwise(text, number) for number, text in enumerate(texts)]
    assert any(UNK in ids for ids in model.source_tokenizer.encode_ids(typed))
    compare(engine, model, typed, SEARCHES[search], corpus)


def compare(engine, model, texts, settings, corpus):
    questions = [("translate", {"text": text, "settings": settings}) for text in texts]
    found = engine.answers(model, questions)
    expected = model(texts, **settings)
    farthest = 0.0
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["source"] == theirs.source_tokens
        assert ours["target"] == theirs.tokens, theirs.source
        difference = np.abs(np.array(ours["attention"]) - theirs.attention).max()
        farthest = max(farthest, float(difference))
    print(f"{corpus}: weights of {len(texts)} sentences differ by at most {farthest:.1e}")
    assert farthest < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("corpus", CORPORA)
def test_empty_and_very_long_sentences_are_answered_as_by_python(corpus, trained, engine):
    model, data = trained(corpus)
    (text,) = sources_of(data)[:1]
    texts = ("", " \u3000\n", "\u1102", text * 30, f"{text} " * 30, "가" * 500)
    questions = [
        ("translate", {"text": each, "settings": settings})
        for each in texts
        for settings in SEARCHES.values()
    ]
    assert_engine_answers_as_python(engine, model, questions)
