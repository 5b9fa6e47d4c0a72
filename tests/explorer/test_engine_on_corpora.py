"""The engine on a thousand sentences of trained models: dates into Korean, and out of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from engine_in_node import TOLERANCE, answers_of_python, engine_in_node

from attnlab import load
from attnlab.data.prepared import PreparedData

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = 1000
CORPORA = {
    "into_korean": ("data=dates", "search=greedy"),
    "out_of_korean": (
        "data=dates",
        "data.source_locales=[ko_KR]",
        "data.target_locale=en_US",
        "data/tokenizer=word",
        "model/attention=general",
        "model/decoder=step_then_attend",
        "model.encoder.cell=lstm",
    ),
}
# Enough steps that the models write dates, if not always the right ones.
SHORT = (
    "data.num_pairs=2000",
    "training.max_steps=120",
    "training.validate_every=120",
    "tracking=none",
    "chain=false",
)


def train(folder, choices):
    """Train a model in a folder; returns it and its prepared data."""
    for script in ("prepare.py", "train.py"):
        command = [sys.executable, str(ROOT / "pipelines" / script), *choices, *SHORT]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    (record,) = folder.glob("runs/points/*/model/model.json")
    (data,) = folder.glob("runs/data/*/data.json")
    return load(record.parent), PreparedData(data.parent)


def sources_of(data):
    texts = []
    for name in ("test", "validation", "train"):
        split = data.split(name)
        texts += [split.source_text(row) for row in range(len(split))]
    return texts[:SENTENCES]


@pytest.mark.slow
@pytest.mark.parametrize("search", [{"search": "greedy"}, {"beam": 3}], ids=["greedy", "beam"])
@pytest.mark.parametrize("corpus", CORPORA)
def test_thousand_sentences_have_the_tokens_and_weights_of_python(corpus, search, trained):
    model, data = trained(corpus)
    texts = sources_of(data)
    assert len(texts) == SENTENCES
    questions = [("translate", {"text": text, "settings": search}) for text in texts]
    with engine_in_node() as engine:
        found = engine.answers(model, questions)
    expected = answers_of_python(model, questions)
    farthest = 0.0
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["target"] == theirs["target"]
        difference = np.abs(np.array(ours["attention"]) - np.array(theirs["attention"])).max()
        farthest = max(farthest, float(difference))
    print(f"{corpus}: weights of {len(texts)} sentences differ by at most {farthest:.1e}")
    assert farthest < TOLERANCE


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Trains the model of a corpus, once."""
    models = {}

    def model_of(corpus):
        if corpus not in models:
            models[corpus] = train(tmp_path_factory.mktemp(corpus), CORPORA[corpus])
        return models[corpus]

    return model_of
