"""The section of a tagger's report: its mistakes and its attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import load_maps
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.evaluation_files import EvaluationFiles, read_lines
from attnlab.plots.heat_map import HeatMap
from attnlab.plots.heat_map_figure import heat_map_figure
from attnlab.tasks.report_section import Content, ReportSection
from lab_extras.tagging.evaluation import TagAccuracy

MISTAKES = 8


class TaggingSection(ReportSection):
    source_key, expected_key, answer_key = "text", "tags", "predicted"
    measures = (TagAccuracy().measure("tag_accuracy"),)
    headlines = ("tag_accuracy",)
    ranked_by = ("tag_accuracy",)
    template = "tagging.html"

    def content(self, evaluation: Path, stats: Mapping[str, Any]) -> Content:
        rows = read_lines(evaluation / self.sentences_file)
        maps = load_maps(evaluation / "attention.npz")
        mistakes = [row for row in rows if row["tags"] != row["predicted"]]
        variables = {
            "mistakes": mistakes[:MISTAKES],
            "heat_maps": [HeatMap.of(each) for each in maps],
        }
        figures = {f"attention_{n}": heat_map_figure(each) for n, each in enumerate(maps, start=1)}
        return variables, figures

    def metrics_of(
        self, evaluations: Sequence[EvaluationFiles]
    ) -> list[Mapping[str, CorpusMetric]]:
        return [{"tag_accuracy": TagAccuracy()} for _ in evaluations]
