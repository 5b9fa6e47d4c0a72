"""The section of a classification's report: confusions, attention and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap, load_maps
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.evaluation_files import EvaluationFiles, read_json, read_lines
from attnlab.evaluation.examples import ATTENTION, LONGEST_TEXT, Examples, read_examples
from attnlab.evaluation.measures import read_measures
from attnlab.plots.histograms import confusion_matrix, length_histogram
from attnlab.plots.sentences import coloured_row, coloured_sentences
from attnlab.tasks.report_section import Content, ReportSection, drawn_rows


class ClassificationSection(ReportSection):
    source_key, expected_key, answer_key = "text", "label", "prediction"
    measures = read_measures(Path(__file__).with_name("measures.yaml"))
    headlines = ("accuracy", "f1", "nll")
    ranked_by = ("accuracy",)
    template = "classification.html"

    def content(self, evaluation: Path, stats: Mapping[str, Any]) -> Content:
        confusions = read_json(evaluation / "confusions.json", "evaluate")
        rows = read_lines(evaluation / self.sentences_file)
        examples = read_examples(evaluation)
        if examples is None:  # an older evaluation does not say which sentences its maps are of
            examples = Examples([], [], load_maps(evaluation / ATTENTION), [])
        lengths = dict(stats["splits"]["train"]["text"]["length_histogram"])
        figures = {
            "lengths": length_histogram({"sentences": lengths}),
            "confusion_matrix": confusion_matrix(confusions["labels"], confusions["counts"]),
            "sentences": coloured_sentences(examples.typical_maps),
        }
        content = {
            "confusions": confusion_rows(confusions["labels"], confusions["counts"]),
            "typical": [coloured_row(each) for each in examples.typical_maps],
            "worst": [coloured_row(each) for each in examples.worst_maps],
            "samples": sample_predictions(rows),
            "longest": LONGEST_TEXT,
        }
        return content, figures

    def metrics_of(
        self, evaluations: Sequence[EvaluationFiles]
    ) -> list[Mapping[str, CorpusMetric]]:
        # Imported here: torchmetrics takes a second, and listing the measures needs none of it.
        from attnlab.tasks.classification.metrics import sentence_metrics

        labels = set()
        for evaluation in evaluations:
            for row in evaluation.sentences:
                labels |= {row["label"], row["prediction"]}
        metrics = sentence_metrics(sorted(labels))
        return [metrics for _ in evaluations]

    def drawn(self, attention: AttentionMap, row: Mapping[str, Any]) -> dict[str, Any]:
        return {"row": coloured_row(attention)}


def confusion_rows(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The confusion matrix for the page: `labels`, and `rows` of a label and its cells."""
    rows = []
    for label, row in zip(labels, counts, strict=True):
        total = max(sum(row), 1)
        cells = [
            {"count": count, "shade": f"{count / total:.2f}", "percent": round(100 * count / total)}
            for count in row
        ]
        rows.append((label, cells))
    return {"labels": labels, "rows": rows}


def sample_predictions(
    rows: Sequence[dict[str, Any]], count: int = 5
) -> dict[str, list[dict[str, Any]]]:
    """`count` sample rows of each kind: "random", "surest mistakes", "least sure".

    The last two are chosen by the probability of the predictions. Random ones come from a fixed
    seed.
    """
    numbered = [{**row, "number": number} for number, row in enumerate(rows, start=1)]
    wrong = [row for row in numbered if not row["correct"]]
    surest_first = sorted(wrong, key=lambda row: -row["probability"])
    least_sure_first = sorted(numbered, key=lambda row: row["probability"])
    return {
        "random": drawn_rows(numbered, count),
        "surest mistakes": surest_first[:count],
        "least sure": least_sure_first[:count],
    }
