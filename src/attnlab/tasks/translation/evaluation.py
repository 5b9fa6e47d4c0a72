"""Evaluation of trained translation models on the test split.

Each sentence is read twice: once with the reference as the decoder's input, for likelihood,
attention and alignments, and once by the search, for the quality of its hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
from attnlab.evaluation.examples import ATTENTION, WORST, write_worst
from attnlab.files import atomic_folder, write_json, write_json_lines
from attnlab.model.fast.packed import weights_packed_once
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.unrolled import Unrolled
from attnlab.progress import Progress
from attnlab.search.ensemble import Ensemble, mean_attention
from attnlab.search.search import Search
from attnlab.tasks.translation.hypotheses import (
    HypothesisText,
    attention_maps,
    example_rows,
    readable_rows,
)
from attnlab.tasks.translation.metrics import TextMetrics, by_length, signatures
from attnlab.tasks.translation.posterior import with_posteriors
from attnlab.tasks.translation.sentence_scores import sentence_scores, worst_rows

BATCHING = Batching(by="sentences", size=64)
EXAMPLE_MAPS = 6

# exp() of a larger number overflows: a double ends at exp(709).
_LARGEST_EXPONENT = 700


@dataclass(frozen=True)
class Evaluation:
    """Results of a model on the test split; `write` makes each field a file.

    metrics: {name: number}. A number that is not finite becomes null in the file.
    signatures: {name: how the number was computed}.
    sentences: one record a sentence, in the split's order; hypotheses.jsonl. Its keys: "source",
        "reference", "hypothesis", "score" (the search's), "source_length" (in tokens, without
        `<eos>`), "exact", "nll" (of the reference, in nats), "target_tokens" (of the reference,
        with `<eos>`), "n_best" if the search returns more than one hypothesis, and "link_counts"
        (`LinkCounts`) with known alignments.
    by_length: quality by source length, as `metrics.by_length` gives it.
    maps: attention of a few typical sentences; attention.npz.
    alignment_offsets, wrong_links: see `AlignmentStatistics`; empty without known alignments.
    typical, worst, worst_maps: see `Examples`; the typical ones are those of `maps`.
    """

    metrics: dict[str, float | int | None]
    signatures: dict[str, str]
    sentences: list[dict[str, Any]]
    by_length: list[dict[str, int | float | None]]
    maps: list[AttentionMap]
    alignment_offsets: list[dict[str, int]]
    wrong_links: list[dict[str, int | str]]
    typical: list[int] = field(default_factory=list)
    worst: list[int] = field(default_factory=list)
    worst_maps: list[AttentionMap] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write the folder, all of it or nothing."""
        with atomic_folder(folder) as temporary:
            write_json(temporary / "metrics.json", self.metrics)
            write_json(temporary / "signatures.json", self.signatures)
            write_json(temporary / "by_length.json", self.by_length)
            write_json(temporary / "alignment_offsets.json", self.alignment_offsets)
            write_json(temporary / "wrong_links.json", self.wrong_links)
            write_json_lines(temporary / "hypotheses.jsonl", self.sentences)
            save_maps(self.maps, temporary / ATTENTION)
            write_worst(temporary, self.typical, self.worst, self.worst_maps)


def evaluate(
    models: Sequence[Seq2Seq], search: Search, data: PreparedData, progress: Progress | None = None
) -> Evaluation:
    """Measure a model on the test split, or several models as an ensemble.

    The models must be in evaluation mode.
    """
    report = progress or _report_nothing
    with torch.no_grad(), weights_packed_once():
        references = _read_references(models, data, report)
        model = models[0] if len(models) == 1 else Ensemble(models)
        decoded = _decode(model, search, data, report)
        sentences = [decoded[row] | references.record(row) for row in range(len(decoded))]
        split = data.split("test")
        typical = example_rows(split, EXAMPLE_MAPS)
        maps = attention_maps(model, search, data, "test", typical)
        readable = readable_rows(split).tolist()
        worst = worst_rows(sentences, sentence_scores(sentences), readable, WORST)
        worst_maps = attention_maps(model, search, data, "test", worst)

    hypotheses = [sentence["hypothesis"] for sentence in sentences]
    texts = [sentence["reference"] for sentence in sentences]
    source_lengths = [sentence["source_length"] for sentence in sentences]
    bleu_tokenize = data.info.bleu_tokenize

    text_metrics = TextMetrics(bleu_tokenize, ter=True, rouge=data.info.rouge)
    text_metrics.update(hypotheses, texts)
    return Evaluation(
        metrics={**references.metrics, **text_metrics.compute(), "sentences": len(sentences)},
        signatures={
            **signatures(bleu_tokenize, data.info.rouge),
            "search": _describe_search(search),
            "models": _describe_models(models),
        },
        sentences=sentences,
        by_length=by_length(source_lengths, hypotheses, texts, bleu_tokenize),
        maps=maps,
        alignment_offsets=references.alignments.offsets(),
        wrong_links=references.alignments.wrong_links(),
        typical=typical,
        worst=worst,
        worst_maps=worst_maps,
    )


def _report_nothing(what: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class _ReadReferences:
    """What was measured with the references as the decoder's input.

    nll: {row of the split: of its reference, in nats}. target_tokens: {row: of its reference}.
    """

    metrics: dict[str, float | int | None]
    alignments: AlignmentStatistics
    nll: dict[int, float]
    target_tokens: dict[int, int]

    def record(self, row: int) -> dict[str, Any]:
        """The keys of a sentence's record."""
        found = {"nll": self.nll[row], "target_tokens": self.target_tokens[row]}
        counts = self.alignments.by_sentence.get(row)
        if counts is None:
            return found
        return found | {"link_counts": counts._asdict()}


def _read_references(
    models: Sequence[Seq2Seq], data: PreparedData, report: Progress
) -> _ReadReferences:
    """Likelihood, attention and alignment, with the reference as decoder input."""
    split = data.split("test")
    device = next(models[0].parameters()).device
    attention = AttentionStatistics().to(device)
    alignments = AlignmentStatistics()
    total_nll = 0.0
    nll_by_row: dict[int, float] = {}
    tokens_by_row: dict[int, int] = {}
    for batch in _test_batches(models[0], data):
        token_nll, weights = read_reference(models, batch)
        total_nll += token_nll.sum().item()
        rows = batch.rows.tolist()
        tokens = batch.target_mask.sum(dim=1)  # (B,)
        nll = _sums_of_sentences(token_nll, batch.target_mask)
        nll_by_row |= zip(rows, nll.tolist(), strict=True)
        tokens_by_row |= zip(rows, tokens.tolist(), strict=True)
        attention.update(weights, batch.source_mask, batch.target_mask)
        if weights is not None and data.info.has_alignments:
            alignments.update_batch(weights, batch, data)
        report("read", len(nll_by_row), len(split))

    target_tokens = sum(tokens_by_row.values())
    mean_nll = total_nll / target_tokens
    metrics: dict[str, float | int | None] = {
        "token_nll": mean_nll,
        "perplexity": math.exp(mean_nll) if mean_nll < _LARGEST_EXPONENT else math.inf,
        "target_tokens": target_tokens,
        **attention.compute(),
    }
    if data.info.has_alignments:
        metrics |= alignments.metrics()
    return _ReadReferences(metrics, alignments, nll_by_row, tokens_by_row)


def _sums_of_sentences(of_tokens: Tensor, mask: Tensor) -> Tensor:
    """(N,) values of the real tokens of a mask (B, T) -> (B,) their sums."""
    rows, _ = mask.nonzero(as_tuple=True)  # (N,)
    return of_tokens.new_zeros(len(mask)).index_add(0, rows, of_tokens)


def _decode(
    model: Seq2Seq | Ensemble, search: Search, data: PreparedData, report: Progress
) -> list[dict[str, Any]]:
    """A record for each sentence with its best hypotheses, in the split's order."""
    to_text = HypothesisText(data.source_tokenizer, data.target_tokenizer, search.replace_unknown)
    split = data.split("test")
    # Batches are sorted by length, so they do not come in the split's order.
    sentences: dict[int, dict[str, Any]] = {}
    for batch in _test_batches(model, data):
        found = search(
            model, batch.source, batch.source_mask, with_attention=search.replace_unknown
        )
        found = with_posteriors(model, batch.source, batch.source_mask, found)
        for row, source_ids, hypotheses in zip(
            batch.rows.tolist(), batch.source, found, strict=True
        ):
            source = split.source_text(row)
            reference = split.target_text(row)
            n_best = [
                {"hypothesis": to_text(hypothesis, source_ids, source), "score": hypothesis.score}
                for hypothesis in hypotheses
            ]
            best = n_best[0]
            sentences[row] = {
                "source": source,
                "reference": reference,
                **best,
                "source_length": int(split.source_lengths[row]),
                "exact": best["hypothesis"] == reference,
            }
            if search.n_best > 1:
                sentences[row]["n_best"] = n_best
        report("decode", len(sentences), len(split))
    return [sentences[row] for row in range(len(split))]


def _test_batches(model: Seq2Seq | Ensemble, data: PreparedData) -> Iterator[Batch]:
    """The test split's batches, on the model's device."""
    device = next(model.parameters()).device
    for batch in SeqDataModule(data, BATCHING, model.padding).test_dataloader():
        yield batch.to(device)


def _describe_search(search: Search) -> str:
    settings = [f"{name} {value}" for name, value in sorted(vars(search).items())]
    return f"{type(search).__name__} ({', '.join(settings)})"


def _describe_models(models: Sequence[Seq2Seq]) -> str:
    if len(models) == 1:
        return "one"
    return f"{len(models)}, their probabilities averaged"


def read_reference(models: Sequence[Seq2Seq], batch: Batch) -> tuple[Tensor, Tensor | None]:
    """Negative log-likelihood of the references' tokens, and the attention weights (B, T, S).

    The likelihood is that of each real target token, (N,), in nats, among all of the vocabulary as
    in training; `Translator.score` leaves out the tokens that no search writes, <pad> and <bos>,
    which only an untrained model thinks likely. Of several models, M of them,
    it is the mean of theirs, and the weights are the mean over those that attend (None where none
    does), as an ensemble has them.
    """
    unrolled = [model(batch) for model in models]
    each_log_probs = [
        _log_probs(model.output, own, batch) for model, own in zip(models, unrolled, strict=True)
    ]
    log_probs = torch.stack(each_log_probs)  # (M, N), N real target tokens
    nll = math.log(len(models)) - log_probs.logsumexp(0)
    return nll, mean_attention([own.attention_weights for own in unrolled])


def _log_probs(output: nn.Module, unrolled: Unrolled, batch: Batch) -> Tensor:
    """The log-probability of each real target token: (N,)."""
    # bfloat16 is too coarse for a sum of logarithms over the whole split.
    logits = output(unrolled.reading[batch.target_mask]).float()
    targets = batch.target_output[batch.target_mask]
    return -nll_loss(logits.log_softmax(-1), targets, reduction="none")
