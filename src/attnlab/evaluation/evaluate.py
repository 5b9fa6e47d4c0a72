"""A trained model on a split: read with the reference fed, and decoded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from attnlab.batch import Batch, Padding
from attnlab.data.datamodule import BatchedRows
from attnlab.data.prepared import PreparedData, PreparedSplit
from attnlab.data.sampler import Batching, BatchSampler
from attnlab.evaluation.alignment_error_rate import AlignmentErrorRate
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.evaluation.attention_statistics import AttentionStatistics
from attnlab.evaluation.by_length import by_length
from attnlab.evaluation.example_maps import example_maps, example_rows
from attnlab.evaluation.text_metrics import TextMetrics, signatures
from attnlab.evaluation.write import DecodedSentence
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.search import Search
from attnlab.training.loss import summed_nll

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many sentences are done, and how many there are."""

BATCH = Batching(by="sentences", size=64)
EXAMPLES = 6


@dataclass
class Evaluation:
    """What `write_evaluation` writes."""

    metrics: dict[str, float | int | None] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    sentences: list[DecodedSentence] = field(default_factory=list)
    by_length: list[dict[str, int | float]] = field(default_factory=list)
    maps: list[AttentionMap] = field(default_factory=list)


def evaluate(
    model: Seq2Seq,
    search: Search,
    data: PreparedData,
    padding: Padding,
    split_name: str = "test",
    autocast: Callable[[], Any] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a model, which must be in evaluation mode, on a split.

    Args:
        search: how to decode.
        padding: the model's padding scheme.
        autocast: a context for the model's sums, such as half precision.
        progress: told how far the work is.
    """
    split = data.split(split_name)
    tell = progress or (lambda *_: None)
    with torch.no_grad(), (autocast or _full_precision)():
        metrics = _read_with_reference(model, data, split, padding, tell)
        sentences = _decode(model, search, data, split, padding, tell)
        rows = example_rows(split, EXAMPLES)
        maps = example_maps(model, search, split, rows, data.source_tokenizer, data.target_tokenizer, padding)
    hypotheses = [sentence.hypothesis for sentence in sentences]
    references = [sentence.reference for sentence in sentences]
    text_metrics = TextMetrics(data.info.bleu_tokenize, ter=True)
    text_metrics.update(hypotheses, references)
    texts = text_metrics.compute()
    lengths = [sentence.source_length for sentence in sentences]
    return Evaluation(
        metrics={**metrics, **texts, "sentences": len(sentences)},
        signatures={
            **signatures(data.info.bleu_tokenize),
            "search": _words(search),
            "exact_match": "share of hypotheses equal to their reference",
            "token_nll": "nats, reference fed, mean over all real target tokens, <eos> included",
            "perplexity": "exp(token_nll)",
            "attention_entropy": "nats, reference fed, mean over all real target tokens",
            "attention_pad_mass": "share of the attention on pads, reference fed, mean over all real target tokens",
            "aer": "Och and Ney 2003, reference fed, strongest source token of each target token that has a link",
        },
        sentences=sentences,
        by_length=by_length(lengths, hypotheses, references, data.info.bleu_tokenize),
        maps=maps,
    )


def _read_with_reference(
    model: Seq2Seq, data: PreparedData, split: PreparedSplit, padding: Padding, tell: Progress
) -> dict[str, float | int | None]:
    """Token negative log-likelihood, where the attention lies, and how well it aligns."""
    statistics, aer = AttentionStatistics(), AlignmentErrorRate()
    nll, tokens, done = 0.0, 0, 0
    for batch in _batches(model, split, padding):
        unrolled = model(batch)
        nll += summed_nll(model.output, unrolled, batch).item()
        tokens += batch.num_target_tokens
        weights = unrolled.attention_weights
        statistics.update(weights, batch.source_mask, batch.target_mask)
        if weights is not None and data.info.has_alignments:
            for i, row in enumerate(batch.rows.tolist()):
                real = weights[i][batch.target_mask[i]][:, batch.source_mask[i]].float().cpu().numpy()
                aer.update(real, split.sure_links(row), split.possible_links(row))
        done += len(batch)
        tell("read", done, len(split))
    measured: dict[str, float | int | None] = {
        "token_nll": nll / tokens,
        "perplexity": _exp(nll / tokens),
        "target_tokens": tokens,
        **statistics.compute(),
    }
    if data.info.has_alignments:
        measured["aer"] = aer.compute()
    return measured


def _decode(
    model: Seq2Seq, search: Search, data: PreparedData, split: PreparedSplit, padding: Padding, tell: Progress
) -> list[DecodedSentence]:
    """The best hypothesis of every sentence, in the split's order."""
    sentences: list[DecodedSentence | None] = [None] * len(split)
    done = 0
    for batch in _batches(model, split, padding):
        found = search(model, batch.source, batch.source_mask)
        for row, (best, *_) in zip(batch.rows.tolist(), found, strict=True):
            sentences[row] = DecodedSentence(
                source=split.source_text(row),
                reference=split.target_text(row),
                hypothesis=data.target_tokenizer.decode(best.tokens),
                score=best.score,
                source_length=int(split.source_lengths[row]),
            )
        done += len(batch)
        tell("decode", done, len(split))
    assert all(sentence is not None for sentence in sentences)
    return [sentence for sentence in sentences if sentence is not None]


def _batches(model: Seq2Seq, split: PreparedSplit, padding: Padding) -> Iterator[Batch]:
    rows = BatchedRows(split, padding)
    device = next(model.parameters()).device
    sampler = BatchSampler(split.source_lengths, split.target_lengths, BATCH, shuffle=False)
    for batch in sampler.batches():
        yield rows[np.asarray(batch)].to(device)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _words(search: Search) -> str:
    values = ", ".join(f"{name} {value}" for name, value in sorted(vars(search).items()))
    return f"{type(search).__name__} ({values})"


def _full_precision() -> Any:
    return torch.autocast("cpu", enabled=False)
