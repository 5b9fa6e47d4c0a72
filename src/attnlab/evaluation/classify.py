"""Evaluation of a trained classifier on the test split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnlab.data.datamodule import SeqDataModule
from attnlab.data.prepared import LabelledData, LabelledSplit
from attnlab.data.sampler import Batching
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.attention_statistics import AttentionStatistics
from attnlab.evaluation.hypotheses import spread
from attnlab.files import write_json, write_json_lines
from attnlab.model.classifier import Classifier
from attnlab.progress import Progress
from attnlab.training.class_metrics import SIGNATURES, ClassMetrics

BATCH = Batching(by="sentences", size=64)
EXAMPLES = 12
LONGEST = 80  # tokens; longer sentences give unreadable pictures


@dataclass(frozen=True)
class Classification:
    """What a trained classifier did on the test split; `write` makes these fields the files of the
    evaluation folder.

    metrics: {name: number}.
    signatures: {name: how the number came about}.
    confusions: row i, column j counts class i taken for class j; confusions.json with the labels.
    sentences: in the split's order, {"text", "label", "prediction", "probability": of the
        prediction, "length": in tokens, `<eos>` not counted, "correct"}; predictions.jsonl.
    maps: attention of a few sentences, one row each; attention.npz.
    """

    metrics: dict[str, float | int | None]
    signatures: dict[str, str]
    labels: list[str]
    confusions: NDArray[np.int64]
    sentences: list[dict[str, Any]]
    maps: list[AttentionMap]

    def write(self, folder: Path) -> None:
        """Write the files into an existing folder."""
        write_json(folder / "metrics.json", self.metrics)
        write_json(folder / "signatures.json", self.signatures)
        write_json(
            folder / "confusions.json", {"labels": self.labels, "counts": self.confusions.tolist()}
        )
        write_json_lines(folder / "predictions.jsonl", self.sentences)
        save_maps(self.maps, folder / "attention.npz")


def classify_split(
    model: Classifier, data: LabelledData, progress: Progress | None = None
) -> Classification:
    """Measure a classifier, which must be in evaluation mode, on the test split."""
    split, labels = data.split("test"), data.labels
    device = next(model.parameters()).device
    metrics, statistics = ClassMetrics(len(labels)).to(device), AttentionStatistics().to(device)
    sentences: dict[int, dict[str, Any]] = {}
    with torch.no_grad():
        for batch in SeqDataModule(data, BATCH, model.padding).test_dataloader():
            batch = batch.to(device)
            found = model(batch.source, batch.source_mask)
            metrics.update(found.log_probabilities, batch.labels)
            one_query = torch.ones_like(batch.labels, dtype=torch.bool).unsqueeze(1)  # (B, T = 1)
            statistics.update(found.attention_weights.unsqueeze(1), batch.source_mask, one_query)
            likeliest, numbers = found.log_probabilities.max(-1)
            for row, probability, number in zip(
                batch.rows.tolist(), likeliest.exp().tolist(), numbers.tolist(), strict=True
            ):
                sentences[row] = {
                    "text": split.text(row),
                    "label": labels[split.labels[row]],
                    "prediction": labels[number],
                    "probability": probability,
                    "length": int(split.source_lengths[row]),
                    "correct": bool(number == split.labels[row]),
                }
            if progress is not None:
                progress("classify", len(sentences), len(split))
        maps = sentence_maps(model, data, "test", EXAMPLES)
    measured = {name: value.item() for name, value in metrics.compute().items()}
    looked = statistics.compute()
    return Classification(
        metrics={
            **measured,
            "attention_entropy": looked["attention_entropy"],
            "attention_pad_mass": looked["attention_pad_mass"],
            "sentences": len(sentences),
        },
        signatures=SIGNATURES,
        labels=labels,
        confusions=metrics.confusions().cpu().numpy(),
        sentences=[sentences[row] for row in range(len(split))],
        maps=maps,
    )


def example_rows(split: LabelledSplit, count: int) -> list[int]:
    """Up to `count` rows of readable length, equally many of each class, spread evenly over the
    split.
    """
    readable = split.source_lengths <= LONGEST
    classes = np.unique(split.labels[readable])[:count]
    chosen: list[int] = []
    for label in classes:
        chosen += spread(np.flatnonzero(readable & (split.labels == label)), count // len(classes))
    return sorted(chosen)


def sentence_maps(
    model: Classifier, data: LabelledData, name: str, count: int
) -> list[AttentionMap]:
    """Attention maps of a few sentences of a split: one row each, whose target token is the
    prediction.

    Columns carry the tokens, `<eos>` included.
    """
    split, labels = data.split(name), data.labels
    rows = example_rows(split, count)
    if not rows:
        return []
    batch = split.batch(np.asarray(rows, dtype=np.int64), model.padding).to(
        next(model.parameters()).device
    )
    found = model(batch.source, batch.source_mask)
    maps = []
    for i in range(len(rows)):
        probability, number = found.log_probabilities[i].exp().max(-1)
        prediction, label = labels[int(number)], labels[int(batch.labels[i])]
        verdict = "" if prediction == label else f", but it is {label}"
        columns = batch.source_mask[i]  # unmasked attention also looks at pads
        maps.append(
            AttentionMap(
                source_tokens=data.tokenizer.tokens(batch.source[i][columns].tolist()),
                target_tokens=[prediction],
                weights=found.attention_weights[i : i + 1, columns].float().cpu().numpy(),
                title=f"{prediction} ({float(probability):.2f}){verdict}",
            )
        )
    return maps
