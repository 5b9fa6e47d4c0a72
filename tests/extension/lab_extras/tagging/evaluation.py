"""The evaluation of a tagger on the test split, and maps of a few sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnlab.data.datamodule import SeqDataModule
from attnlab.data.sampler import Batching
from attnlab.evaluation.attention_map import AttentionMap, evenly_spaced, save_maps
from attnlab.evaluation.corpus_metric import CorpusMetric, Rows
from attnlab.files import write_json, write_json_lines
from attnlab.progress import Progress
from lab_extras.tagging.data import NO_TAG, TaggedData
from lab_extras.tagging.model import Tagger

EXAMPLE_MAPS = 4


class TagAccuracy(CorpusMetric):
    """The share of words with the right tag."""

    label = "tag accuracy"
    meaning = "0–1, share of words with the right tag"
    least, most = 0.0, 1.0
    sums = 2

    def statistics(self, rows: Rows) -> np.ndarray:
        counts = []
        for row in rows:
            tags, predicted = row["tags"].split(), row["predicted"].split()
            right = sum(one == other for one, other in zip(tags, predicted, strict=True))
            counts.append([right, len(tags)])
        return np.array(counts, dtype=np.float64)

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return sums[:, 0] / sums[:, 1]


@torch.no_grad()
def evaluate(
    model: Tagger, data: TaggedData, into: Path, progress: Progress
) -> dict[str, float | int | None]:
    """Measure a tagger, which must be in evaluation mode, and write an empty folder."""
    split = data.split("test")
    names = data.info.tags
    rows: dict[int, dict[str, Any]] = {}
    batching = Batching(by="sentences", size=64)
    device = next(model.parameters()).device
    for batch in SeqDataModule(data, batching, model.padding).test_dataloader():
        batch = batch.to(device)
        found = model(batch.source, batch.source_mask)
        predicted = found.log_probabilities.argmax(-1)
        for i, row in enumerate(batch.rows.tolist()):
            is_word = batch.tags[i] != NO_TAG
            rows[row] = {
                "text": split.source_text(row),
                "tags": " ".join(names[number] for number in batch.tags[i, is_word].tolist()),
                "predicted": " ".join(names[number] for number in predicted[i, is_word].tolist()),
            }
        progress("tag", len(rows), len(split))

    in_order = [rows[row] for row in range(len(split))]
    metric = TagAccuracy()
    sums = metric.statistics(in_order).sum(axis=0, keepdims=True)
    metrics = {"tag_accuracy": float(metric.scores(sums)[0]), "sentences": len(in_order)}
    write_json(into / "metrics.json", metrics)
    write_json(into / "signatures.json", {"tag_accuracy": metric.signature})
    write_json_lines(into / "predictions.jsonl", in_order)
    save_maps(example_maps(model, data, "test", EXAMPLE_MAPS), into / "attention.npz")
    return metrics


@torch.no_grad()
def example_maps(model: Tagger, data: TaggedData, name: str, count: int) -> list[AttentionMap]:
    """Where the tokens of a few sentences looked."""
    split = data.split(name)
    rows = evenly_spaced(np.arange(len(split)), count)
    if not rows:
        return []
    batch = split.batch(np.asarray(rows), model.padding).to(next(model.parameters()).device)
    found = model(batch.source, batch.source_mask)
    maps = []
    for i, row in enumerate(rows):
        real = batch.source_mask[i]
        tokens = data.tokenizer.tokens(batch.source[i, real].tolist())
        weights = found.attention_weights[i][real][:, real].float().cpu().numpy()
        maps.append(AttentionMap(tokens, tokens, weights, split.source_text(row)))
    return maps
