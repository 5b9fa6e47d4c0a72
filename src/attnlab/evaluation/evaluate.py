"""Evaluation of a trained model on the test split: scored with the reference fed, then decoded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from attnlab.batch import Batch
from attnlab.data.datamodule import SeqDataModule
from attnlab.data.prepared import PreparedData
from attnlab.data.sampler import Batching
from attnlab.evaluation.alignments import AlignmentStatistics
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.attention_statistics import AttentionStatistics
from attnlab.evaluation.hypotheses import HypothesisText, example_maps
from attnlab.evaluation.sentence_statistics import signatures
from attnlab.evaluation.text_metrics import TextMetrics, by_length
from attnlab.files import atomic_folder, write_json, write_json_lines
from attnlab.model.fast_linear import weights_packed_once
from attnlab.model.seq2seq import Seq2Seq, Unrolled
from attnlab.progress import Progress
from attnlab.search.ensemble import Ensemble, mean_attention
from attnlab.search.search import Search

BATCH = Batching(by="sentences", size=64)
EXAMPLES = 6


@dataclass(frozen=True)
class Evaluation:
    """What a trained model did on the test split; `write` makes these fields the files of the
    evaluation folder.

    metrics: {name: number}. A number that is not finite becomes null in the file.
    signatures: {name: how the number came about}.
    sentences: in the split's order, {"source", "reference", "hypothesis", "score": the search's,
        "source_length": in tokens, `<eos>` not counted, "exact"}, and "n_best" where more than one
        was requested; hypotheses.jsonl.
    by_length: quality by source length.
    maps: attention of a few sentences; attention.npz.
    alignment_offsets, wrong_links: see `AlignmentStatistics`; empty without known alignments.
    """

    metrics: dict[str, float | int | None]
    signatures: dict[str, str]
    sentences: list[dict[str, Any]]
    by_length: list[dict[str, int | float]]
    maps: list[AttentionMap]
    alignment_offsets: list[dict[str, int]]
    wrong_links: list[dict[str, int | str]]

    def write(self, folder: Path) -> None:
        """Write the folder, all of it or nothing."""
        with atomic_folder(folder) as temporary:
            for name in ("metrics", "signatures", "by_length", "alignment_offsets", "wrong_links"):
                write_json(temporary / f"{name}.json", getattr(self, name))
            write_json_lines(temporary / "hypotheses.jsonl", self.sentences)
            save_maps(self.maps, temporary / "attention.npz")


def evaluate(
    models: Sequence[Seq2Seq], search: Search, data: PreparedData, progress: Progress | None = None
) -> Evaluation:
    """Measure a model on the test split, or several as an ensemble; they must be in evaluation
    mode.
    """
    report = progress or (lambda *_: None)
    with torch.no_grad(), weights_packed_once():
        metrics, alignments = _read_with_reference(models, data, report)
        model = models[0] if len(models) == 1 else Ensemble(models)
        sentences = _decode(model, search, data, report)
        maps = example_maps(model, search, data, "test", EXAMPLES)
    hypotheses, references = (
        [row[side] for row in sentences] for side in ("hypothesis", "reference")
    )
    text_metrics = TextMetrics(data.info.bleu_tokenize, ter=True, rouge=data.info.rouge)
    text_metrics.update(hypotheses, references)
    lengths = [row["source_length"] for row in sentences]
    return Evaluation(
        metrics={**metrics, **text_metrics.compute(), "sentences": len(sentences)},
        signatures={
            **signatures(data.info.bleu_tokenize, data.info.rouge),
            "search": _words(search),
            "models": "one" if len(models) == 1 else f"{len(models)}, their probabilities averaged",
        },
        sentences=sentences,
        by_length=by_length(lengths, hypotheses, references, data.info.bleu_tokenize),
        maps=maps,
        alignment_offsets=alignments.offsets(),
        wrong_links=alignments.wrong_links(),
    )


def _read_with_reference(
    models: Sequence[Seq2Seq], data: PreparedData, report: Progress
) -> tuple[dict[str, float | int | None], AlignmentStatistics]:
    """Metrics of likelihood, attention and alignment."""
    statistics, alignments = AttentionStatistics(), AlignmentStatistics()
    nll, tokens, done, split = 0.0, 0, 0, data.split("test")
    for batch in _batches(models[0], data):
        summed_nll, weights = read_reference(models, batch)
        nll += summed_nll
        tokens += batch.num_target_tokens
        statistics.update(weights, batch.source_mask, batch.target_mask)
        if weights is not None and data.info.has_alignments:
            alignments.update_batch(weights, batch, data)
        done += len(batch)
        report("read", done, len(split))
    mean = nll / tokens
    measured: dict[str, float | int | None] = {
        "token_nll": mean,
        "perplexity": math.exp(mean) if mean < 700 else math.inf,  # a double ends at exp(709)
        "target_tokens": tokens,
        **statistics.compute(),
    }
    if data.info.has_alignments:
        measured |= alignments.metrics()
    return measured, alignments


def _decode(
    model: Seq2Seq | Ensemble, search: Search, data: PreparedData, report: Progress
) -> list[dict[str, Any]]:
    """The best hypotheses of every sentence, in the split's order."""
    to_text = HypothesisText(data.source_tokenizer, data.target_tokenizer, search.replace_unknown)
    sentences: dict[int, dict[str, Any]] = {}
    split = data.split("test")
    for batch in _batches(model, data):
        found = search(
            model, batch.source, batch.source_mask, with_attention=search.replace_unknown
        )
        for row, ids, hypotheses in zip(batch.rows.tolist(), batch.source, found, strict=True):
            source, reference = split.source_text(row), split.target_text(row)
            n_best = [
                {"hypothesis": to_text(each, ids, source), "score": each.score}
                for each in hypotheses
            ]
            sentences[row] = {
                "source": source,
                "reference": reference,
                **n_best[0],
                "source_length": int(split.source_lengths[row]),
                "exact": n_best[0]["hypothesis"] == reference,
                **({"n_best": n_best} if search.n_best > 1 else {}),
            }
        report("decode", len(sentences), len(split))
    return [sentences[row] for row in range(len(split))]


def _batches(model: Seq2Seq | Ensemble, data: PreparedData) -> Iterator[Batch]:
    device = next(model.parameters()).device
    for batch in SeqDataModule(data, BATCH, model.padding).test_dataloader():
        yield batch.to(device)


def _words(search: Search) -> str:
    values = ", ".join(f"{name} {value}" for name, value in sorted(vars(search).items()))
    return f"{type(search).__name__} ({values})"


def read_reference(models: Sequence[Seq2Seq], batch: Batch) -> tuple[float, Tensor | None]:
    """The negative log-likelihood in nats, summed over the real target tokens, and the attention
    weights (B, T, S).

    Of several models, M of them, the likelihood of a token is the mean of theirs, and the weights
    are the mean over those that attend (None where none does), as an ensemble has them.
    """
    unrolled = [model(batch) for model in models]
    log_probs = torch.stack(
        [
            _log_probs(model.output, each, batch)
            for model, each in zip(models, unrolled, strict=True)
        ]
    )  # (M, N), N real target tokens
    nll = -(log_probs.logsumexp(0) - math.log(len(models))).sum()
    return nll.item(), mean_attention([each.attention_weights for each in unrolled])


def _log_probs(output: nn.Module, unrolled: Unrolled, batch: Batch) -> Tensor:
    """The log-probability of each real target token: (N,)."""
    logits = output(unrolled.readout[batch.target_mask]).float()
    return -nll_loss(
        logits.log_softmax(-1), batch.target_output[batch.target_mask], reduction="none"
    )
