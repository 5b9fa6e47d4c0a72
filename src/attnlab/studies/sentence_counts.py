"""What the metrics of a study count in each test sentence of a model.

Axes: N sentences, K sums.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.alignments import ALIGNMENT_METRICS, statistics_of_links
from attnlab.evaluation.corpus_metric import CorpusMetric, Rows
from attnlab.evaluation.evaluation_files import EvaluationFiles, read_evaluation
from attnlab.evaluation.grades import DEPENDENT, GRADED
from attnlab.studies.measured_rows import at_place
from attnlab.studies.measurements import GRADED_SENTENCES, Point
from attnlab.tasks.translation.metrics import rows_of_texts, text_metrics


@dataclass(frozen=True, eq=False)
class Counts:
    """statistics: (N, K) of the metric, 0 in sentences that it is not measured on."""

    metric: CorpusMetric
    statistics: NDArray[np.float64]


@dataclass(frozen=True)
class SentenceCounts:
    """What the metrics count in the sentences of one model.

    test_set: which sentences these are; equal for models that were tested on the same ones.
    by_system: {system of the rows, with its place or part: {measure: counts}}.
    """

    test_set: str
    sentences: int
    by_system: Mapping[str, Mapping[str, Counts]]


def of_evaluation(point: Point) -> SentenceCounts:
    """Of the metrics of the test split."""
    evaluation = _evaluation(point)
    (metrics,) = point.experiment.task.report_section().metrics_of([evaluation])
    measured = {name: each for name, each in metrics.items() if name in evaluation.metrics}
    counts = _counts(measured, evaluation.sentences)
    return _sentence_counts(point, evaluation, {point.system: counts})


def of_lengths(point: Point) -> SentenceCounts:
    """Of the quality of each range of source lengths."""
    evaluation = _evaluation(point)
    (metrics,) = point.experiment.task.report_section().metrics_of([evaluation])
    lengths = np.array([sentence["source_length"] for sentence in evaluation.sentences])
    ranges = evaluation.by_length
    measured = {name: each for name, each in metrics.items() if any(name in row for row in ranges)}
    counts = _counts(measured, evaluation.sentences)
    by_system: dict[str, dict[str, Counts]] = {}
    for found in ranges:
        in_range = (lengths >= found["from"]) & (lengths <= found["to"])
        by_system[at_place(point.system, found["to"])] = {
            name: _only(of_all, in_range)
            for name, of_all in counts.items()
            if found.get(name) is not None
        }
    return _sentence_counts(point, evaluation, by_system)


def of_interventions(point: Point) -> SentenceCounts:
    """Of the quality with the attention as trained, and changed."""
    info, split = point.data.info, point.data.split("test")
    sources = [split.source_text(row) for row in range(len(split))]
    references = [split.target_text(row) for row in range(len(split))]
    metrics = text_metrics(info.bleu_tokenize, rouge=None)
    by_system = {}
    for name, hypotheses in point.changed_answers.items():
        rows = rows_of_texts(hypotheses, references)
        by_system[point.part(name)] = _counts(metrics, rows)
    return SentenceCounts(_digest(sources, references), len(sources), by_system)


def of_explanations(point: Point) -> SentenceCounts:
    """Of the agreement of each method with the known alignments."""
    split = point.data.split("test")
    graded = range(min(GRADED_SENTENCES, len(split)))
    sources = [split.source_text(row) for row in graded]
    references = [split.target_text(row) for row in graded]
    by_system = {}
    for method, grades in point.grades.items():
        of_method: dict[str, Counts] = {}
        for prefix, found in (("", grades.every_token), (DEPENDENT, grades.dependent)):
            statistics = statistics_of_links(found.by_sentence[row] for row in graded)
            for name in GRADED:
                of_method[f"{prefix}{name}"] = Counts(ALIGNMENT_METRICS[name], statistics)
        by_system[point.part(method)] = of_method
    return SentenceCounts(_digest(sources, references), len(sources), by_system)


# The measurements whose rows come from test sentences that can be resampled.
SENTENCE_COUNTS: dict[str, Callable[[Point], SentenceCounts]] = {
    "evaluation": of_evaluation,
    "length": of_lengths,
    "interventions": of_interventions,
    "explanations": of_explanations,
}


def _evaluation(point: Point) -> EvaluationFiles:
    section = point.experiment.task.report_section()
    return read_evaluation(point.evaluated(), section.sentences_file)


def _sentence_counts(
    point: Point, evaluation: EvaluationFiles, by_system: Mapping[str, Mapping[str, Counts]]
) -> SentenceCounts:
    test_set = point.experiment.task.report_section().test_set(evaluation)
    return SentenceCounts(test_set, len(evaluation.sentences), by_system)


def _counts(metrics: Mapping[str, CorpusMetric], rows: Rows) -> dict[str, Counts]:
    return {name: Counts(metric, metric.statistics(rows)) for name, metric in metrics.items()}


def _only(counts: Counts, sentences: NDArray[np.bool_]) -> Counts:
    """Without the sentences that the mask (N,) leaves out."""
    return Counts(counts.metric, counts.statistics * sentences[:, np.newaxis])


def _digest(sources: Sequence[str], references: Sequence[str]) -> str:
    texts = [sources, references]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
