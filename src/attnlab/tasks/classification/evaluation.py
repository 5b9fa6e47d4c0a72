"""Evaluation of a trained classifier on the test split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.data.datamodule import SeqDataModule
from attnlab.data.prepared import LabelledData, LabelledSplit
from attnlab.data.sampler import Batching
from attnlab.evaluation.attention_map import AttentionMap, evenly_spaced, save_maps
from attnlab.evaluation.attention_statistics import AttentionStatistics
from attnlab.evaluation.examples import ATTENTION, LONGEST_TEXT, WORST, write_worst
from attnlab.files import write_json, write_json_lines
from attnlab.model.classifier import Classifier
from attnlab.model.fast import speed_up
from attnlab.progress import Progress
from attnlab.tasks.classification.metrics import SIGNATURES, ClassMetrics

BATCHING = Batching(by="sentences", size=64)
EXAMPLE_MAPS = 12


@dataclass(frozen=True)
class Classification:
    """Results of a classifier on the test split; `write` makes the fields files.

    metrics: {name: number}.
    signatures: {name: how the number was computed}.
    labels, confusions: row i, column j counts class i predicted as class j; confusions.json.
    sentences: one record a sentence, in the split's order; predictions.jsonl. Its keys: "text",
        "label", "prediction", "probability" (of the prediction), "length" (in tokens, without
        `<eos>`), "correct".
    maps: attention of a few typical sentences, one row each; attention.npz.
    typical, worst, worst_maps: see `Examples`; the typical ones are those of `maps`.
    """

    metrics: dict[str, float | int | None]
    signatures: dict[str, str]
    labels: list[str]
    confusions: NDArray[np.int64]
    sentences: list[dict[str, Any]]
    maps: list[AttentionMap]
    typical: list[int] = field(default_factory=list)
    worst: list[int] = field(default_factory=list)
    worst_maps: list[AttentionMap] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write the files into an existing folder."""
        confusions = {"labels": self.labels, "counts": self.confusions.tolist()}
        write_json(folder / "metrics.json", self.metrics)
        write_json(folder / "signatures.json", self.signatures)
        write_json(folder / "confusions.json", confusions)
        write_json_lines(folder / "predictions.jsonl", self.sentences)
        save_maps(self.maps, folder / ATTENTION)
        write_worst(folder, self.typical, self.worst, self.worst_maps)


def classify_split(
    model: Classifier, data: LabelledData, progress: Progress | None = None
) -> Classification:
    """Measure a classifier, which must be in evaluation mode, on the test split."""
    speed_up(model)
    split = data.split("test")
    labels = data.labels
    device = next(model.parameters()).device
    metrics = ClassMetrics(len(labels)).to(device)
    attention = AttentionStatistics().to(device)
    # Batches are sorted by length, so they do not come in the split's order.
    sentences: dict[int, dict[str, Any]] = {}

    with torch.no_grad():
        for batch in SeqDataModule(data, BATCHING, model.padding).test_dataloader():
            batch = batch.to(device)
            found = model(batch.source, batch.source_mask)
            metrics.update(found.log_probabilities, batch.labels)

            # A classifier attends once a sentence, so T is 1 and its only query is a real one.
            target_mask = torch.ones_like(batch.labels, dtype=torch.bool).unsqueeze(1)  # (B, 1)
            attention.update(found.attention_weights.unsqueeze(1), batch.source_mask, target_mask)

            best_log_probabilities, best_classes = found.log_probabilities.max(-1)
            for row, probability, number in zip(
                batch.rows.tolist(),
                best_log_probabilities.exp().tolist(),
                best_classes.tolist(),
                strict=True,
            ):
                sentences[row] = {
                    "text": split.source_text(row),
                    "label": labels[split.labels[row]],
                    "prediction": labels[number],
                    "probability": probability,
                    "length": int(split.source_lengths[row]),
                    "correct": bool(number == split.labels[row]),
                }
            if progress is not None:
                progress("classify", len(sentences), len(split))
        typical = example_rows(split, EXAMPLE_MAPS)
        maps = maps_of_rows(model, data, "test", typical)
        worst = surest_mistakes(sentences, readable_rows(split).tolist(), WORST)
        worst_maps = maps_of_rows(model, data, "test", worst)

    class_metrics = {name: value.item() for name, value in metrics.compute().items()}
    attention_metrics = attention.compute()
    return Classification(
        metrics={
            **class_metrics,
            # The other two say where successive queries look, and here is only one.
            "attention_entropy": attention_metrics["attention_entropy"],
            "attention_pad_mass": attention_metrics["attention_pad_mass"],
            "sentences": len(sentences),
        },
        signatures=SIGNATURES,
        labels=labels,
        confusions=metrics.confusions().cpu().numpy(),
        sentences=[sentences[row] for row in range(len(split))],
        maps=maps,
        typical=typical,
        worst=worst,
        worst_maps=worst_maps,
    )


def surest_mistakes(
    sentences: Mapping[int, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    among: Iterable[int],
    count: int,
) -> list[int]:
    """Up to `count` of the rows `among` whose class is wrong, the most probable one first.

    sentences: the records of predictions.jsonl by their row.
    """
    wrong = []
    for row in among:
        sentence = sentences[row]
        if not sentence["correct"]:
            wrong.append((-sentence["probability"], row))
    return [row for _, row in sorted(wrong)[:count]]


def readable_rows(split: LabelledSplit) -> NDArray[np.int64]:
    """The rows whose sentence is of readable length."""
    return np.flatnonzero(split.source_lengths <= LONGEST_TEXT)


def example_rows(split: LabelledSplit, count: int) -> list[int]:
    """Up to `count` rows of readable length, equally many of each class, evenly spaced."""
    readable = readable_rows(split)
    labels = split.labels[readable]
    classes = np.unique(labels)[:count]
    chosen: list[int] = []
    for label in classes:
        rows_of_class = readable[labels == label]
        chosen += evenly_spaced(rows_of_class, count // len(classes))
    return sorted(chosen)


def sentence_maps(
    model: Classifier, data: LabelledData, name: str, count: int
) -> list[AttentionMap]:
    """Attention maps of a few sentences of the split with this name.

    Each has one row, whose target token is the prediction. Columns carry the tokens, `<eos>`
    included.
    """
    return maps_of_rows(model, data, name, example_rows(data.split(name), count))


def maps_of_rows(
    model: Classifier, data: LabelledData, name: str, rows: Sequence[int]
) -> list[AttentionMap]:
    """As `sentence_maps`, of these rows."""
    split = data.split(name)
    if not rows:
        return []

    device = next(model.parameters()).device
    batch = split.batch(np.asarray(rows, dtype=np.int64), model.padding).to(device)
    found = model(batch.source, batch.source_mask)
    maps = []
    for i in range(len(rows)):
        probability, number = found.log_probabilities[i].exp().max(-1)
        prediction = data.labels[int(number)]
        label = data.labels[int(batch.labels[i])]
        verdict = "" if prediction == label else f", but it is {label}"

        # Unmasked attention also looks at pads; the picture shows the real tokens' share.
        columns = batch.source_mask[i]
        attention_map = AttentionMap(
            source_tokens=data.tokenizer.tokens(batch.source[i][columns].tolist()),
            target_tokens=[prediction],
            weights=found.attention_weights[i : i + 1, columns].float().cpu().numpy(),
            title=f"{prediction} ({float(probability):.2f}){verdict}",
        )
        maps.append(attention_map)
    return maps
