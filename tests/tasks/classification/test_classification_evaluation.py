"""What a classifier's evaluation measures and writes, against counting by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnlab.batch import EOS, Padding
from attnlab.data.padding import Ragged
from attnlab.data.prepare import SplitCounter
from attnlab.data.prepared import FORMAT, LabelledData
from attnlab.data.trainers import WordTrainer
from attnlab.evaluation.attention_map import load_maps
from attnlab.evaluation.examples import WORST
from attnlab.files import write_json
from attnlab.model.classifier import Classified
from attnlab.model.fast.linear import FastLinear
from attnlab.tasks.classification.evaluation import Classification, classify_split, example_rows
from attnlab.tasks.classification.metrics import SIGNATURES

LABELS = ["일상", "break-up", "love"]
# text, class; the stub below goes by the number of words.
ROWS = [
    ("나도 월급", 0),
    ("헤어진지", 1),
    ("사랑 이 끝난", 2),
    ("나도", 0),
    ("한달", 2),
    ("왜 왜", 1),
    ("x y z", 2),
]


class ByLength(nn.Module):
    """Takes sentences of n words for class n - 1.

    It attends to the first real token with 0.75 and to the last with 0.25.
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.padding = Padding()

    def forward(
        self, source: Tensor, source_mask: Tensor, intervention: object = None
    ) -> Classified:
        lengths = source_mask.sum(1) - 1
        assert bool((source[torch.arange(len(source)), -1] == EOS).all())
        probabilities = torch.full((len(source), 3), 0.1).scatter(
            1, (lengths - 1).clamp(0, 2).unsqueeze(1), 0.8
        )
        weights = torch.zeros(source.shape)
        weights[torch.arange(len(source)), source_mask.float().argmax(1)] = 0.75
        weights[:, -1] = 0.25
        return Classified(probabilities.log() + 0 * self.weight, weights)


@pytest.fixture
def data(tmp_path: Path) -> LabelledData:
    """Prepared data, written without a corpus."""
    import pyarrow as pa

    folder = tmp_path / "data"
    folder.mkdir()
    tokenizer = WordTrainer(min_frequency=1).train(text for text, _ in ROWS)
    tokenizer.save(folder / "tokenizer.json")
    schema = pa.schema({"text": pa.string(), "label": pa.int32(), "ids": pa.list_(pa.int32())})
    counters = {}
    for split in ("train", "validation", "test"):
        counter = counters[split] = SplitCounter("sentences", ["text"])
        ids = tokenizer.encode_ids([text for text, _ in ROWS])
        counter.add({"text": Ragged.from_rows(ids)}, {"text": 0}, [label for _, label in ROWS])
        columns = {
            "text": [text for text, _ in ROWS],
            "label": [label for _, label in ROWS],
            "ids": ids,
        }
        with pa.ipc.new_file(str(folder / f"{split}.arrow"), schema) as file:
            file.write_table(pa.table(columns, schema=schema))
    write_json(
        folder / "stats.json",
        {"splits": {name: counter.summary(LABELS) for name, counter in counters.items()}},
    )
    write_json(folder / "data.json", {"format": FORMAT, "labels": LABELS})
    return LabelledData(folder)


@pytest.fixture
def found(data: LabelledData) -> Classification:
    return classify_split(ByLength().eval(), data)  # type: ignore[arg-type]


def test_classify_split_speeds_its_model_up(data: LabelledData) -> None:
    model = ByLength()
    model.layer = nn.Linear(1, 1)
    classify_split(model.eval(), data)  # type: ignore[arg-type]
    assert isinstance(model.layer, FastLinear)


def test_classify_split_equals_counts_in_the_order_of_sentences(found: Classification) -> None:
    predictions = [len(text.split()) - 1 for text, _ in ROWS]
    labels = [label for _, label in ROWS]
    assert [LABELS.index(sentence["prediction"]) for sentence in found.sentences] == predictions
    assert [(each["text"], each["length"]) for each in found.sentences] == [
        (text, len(text.split())) for text, _ in ROWS
    ]
    assert all(sentence["probability"] == pytest.approx(0.8) for sentence in found.sentences)
    hits = [ours == theirs for ours, theirs in zip(predictions, labels, strict=True)]
    assert [sentence["correct"] for sentence in found.sentences] == hits
    assert found.metrics["accuracy"] == pytest.approx(sum(hits) / 7)
    assert found.metrics["nll"] == pytest.approx(
        -np.where(hits, math.log(0.8), math.log(0.1)).mean(), rel=1e-6
    )
    counts = np.zeros((3, 3), dtype=int)
    np.add.at(counts, (labels, predictions), 1)
    assert found.confusions.tolist() == counts.tolist()
    diagonal, rows, columns = counts.diagonal(), counts.sum(1), counts.sum(0)
    assert found.metrics["f1"] == pytest.approx((2 * diagonal / (rows + columns)).mean())
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert found.metrics["attention_entropy"] == pytest.approx(entropy, rel=1e-6)
    assert found.metrics["attention_pad_mass"] == 0
    assert found.metrics["sentences"] == 7
    assert set(SIGNATURES) <= set(found.signatures)
    assert {*found.signatures} <= {*found.metrics}


def test_classify_split_examples_carry_their_weights(
    found: Classification, data: LabelledData
) -> None:
    rows = example_rows(data.split("test"), 12)
    assert len(found.maps) == len(rows)
    for attention, row in zip(found.maps, rows, strict=True):
        text, label = ROWS[row]
        assert attention.source_tokens == [*text.split(), "<eos>"]
        assert attention.target_tokens == [LABELS[len(text.split()) - 1]]
        expected = np.zeros((1, len(text.split()) + 1))
        expected[0, 0], expected[0, -1] = 0.75, 0.25
        assert np.allclose(attention.weights, expected)
        assert (f", but it is {LABELS[label]}" in attention.title) == (
            len(text.split()) - 1 != label
        )


def test_classify_split_keeps_the_maps_of_the_surest_mistakes(found: Classification) -> None:
    mistakes = [row for row, each in enumerate(found.sentences) if not each["correct"]]
    mistakes.sort(key=lambda row: -found.sentences[row]["probability"])
    assert found.worst == mistakes[:WORST] != []
    for row, attention in zip(found.worst, found.worst_maps, strict=True):
        assert attention.source_tokens == [*ROWS[row][0].split(), "<eos>"]


def test_example_rows_are_balanced_over_classes(data: LabelledData) -> None:
    split = data.split("test")
    for count in (0, 1, 2, 3, 4, 6, 100):
        rows = example_rows(split, count)
        assert len(rows) <= count
        assert rows == sorted(set(rows)) == example_rows(split, count)
        numbers = split.labels[rows]
        assert len(set(numbers.tolist())) == min(count, 3)
    assert np.bincount(split.labels[example_rows(split, 6)]).tolist() == [2, 2, 2]


def test_classification_write_writes_all_files(found: Classification, tmp_path: Path) -> None:
    folder = tmp_path / "evaluation"
    folder.mkdir()
    found.write(folder)
    assert (
        json.loads((folder / "metrics.json").read_text())["accuracy"] == found.metrics["accuracy"]
    )
    confusions = json.loads((folder / "confusions.json").read_text(encoding="utf-8"))
    assert confusions == {"labels": LABELS, "counts": found.confusions.tolist()}
    lines = [
        json.loads(line)
        for line in (folder / "predictions.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    ]
    assert [line["text"] for line in lines] == [text for text, _ in ROWS]
    assert set(lines[0]) == {"text", "label", "prediction", "probability", "length", "correct"}
    assert [each.title for each in load_maps(folder / "attention.npz")] == [
        each.title for each in found.maps
    ]
