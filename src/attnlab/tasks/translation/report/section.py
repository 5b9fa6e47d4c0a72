"""The section of a translation's report: quality by length, samples, attention, alignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sacrebleu.metrics import CHRF

from attnlab.evaluation.attention_map import AttentionMap, load_maps
from attnlab.evaluation.evaluation_files import EvaluationFiles, read_json, read_lines
from attnlab.evaluation.measures import read_measures
from attnlab.evaluation.sentence_statistics import CorpusMetric
from attnlab.plots.curves import length_curve
from attnlab.plots.heat_map import HeatMap
from attnlab.plots.heat_map_figure import heat_map_figure
from attnlab.plots.histograms import length_histogram, offset_histogram
from attnlab.tasks.report_section import Content, ReportSection, drawn_rows
from attnlab.tasks.translation.metrics import metrics_of_signatures

_HEAT_MAPS = 4  # beside the page
_WRONG_LINKS = 8
# The signatures that say how texts are split.
_SPLITTING = ("bleu", "rouge1")


class TranslationSection(ReportSection):
    sentences_file = "hypotheses.jsonl"
    measures = read_measures(Path(__file__).with_name("measures.yaml"))
    headlines = (
        "bleu",
        "chrf",
        "rouge1",
        "rouge2",
        "rougeL",
        "exact_match",
        "perplexity",
        "aer",
    )
    ranked_by = ("bleu", "exact_match")
    sentence_metric = "chrf"
    template = "translation.html"

    def content(self, evaluation: Path, stats: Mapping[str, Any]) -> Content:
        by_length = read_json(evaluation / "by_length.json", "evaluate")
        offsets = read_json(evaluation / "alignment_offsets.json", "evaluate")
        wrong_links = read_json(evaluation / "wrong_links.json", "evaluate")
        maps = load_maps(evaluation / "attention.npz")

        train = stats["splits"]["train"]
        lengths = {side: dict(train[side]["length_histogram"]) for side in ("source", "target")}
        figures = {"lengths": length_histogram(lengths)}
        if by_length:
            figures["length_curve"] = length_curve(by_length)
        if offsets:
            figures["offsets"] = offset_histogram(offsets)
        for number, each in enumerate(maps[:_HEAT_MAPS], start=1):
            figures[f"attention_{number}"] = heat_map_figure(each)
        content = {
            "by_length": by_length,
            "samples": sample_translations(read_lines(evaluation / self.sentences_file)),
            "wrong_links": [row for row in wrong_links if row["wrong"]][:_WRONG_LINKS],
            "linked_tokens": len(wrong_links),
            "heat_maps": [HeatMap.of(each) for each in maps],
        }
        return content, figures

    def metrics_of(
        self, evaluations: Sequence[EvaluationFiles]
    ) -> list[Mapping[str, CorpusMetric]]:
        # Evaluations that split texts alike share their metrics, because these cache words.
        of_splitting: dict[tuple[str, ...], Mapping[str, CorpusMetric]] = {}
        found = []
        for evaluation in evaluations:
            splitting = tuple(evaluation.signatures.get(name, "") for name in _SPLITTING)
            if splitting not in of_splitting:
                of_splitting[splitting] = metrics_of_signatures(evaluation.signatures)
            found.append(of_splitting[splitting])
        return found

    def maps_by_source(self, evaluation: EvaluationFiles) -> dict[str, AttentionMap]:
        # The title of a translation's map is `source → hypothesis`; a source may contain an arrow.
        sources = {row["source"] for row in evaluation.sentences}
        longest_first = sorted(sources, key=len, reverse=True)
        found = {}
        for each in evaluation.maps:
            fitting = (text for text in longest_first if each.title.startswith(f"{text} → "))
            found[next(fitting, each.title)] = each
        return found

    def drawn(self, attention: AttentionMap, row: Mapping[str, Any]) -> dict[str, Any]:
        untitled = replace(attention, title="")
        return {"text": row.get(self.answer_key), "heat_map": HeatMap.of(untitled)}


def sample_translations(
    rows: Sequence[dict[str, Any]], count: int = 5
) -> dict[str, list[dict[str, Any]]]:
    """{"random", "best", "worst"}: `count` rows each, with their sentence-level chrF2 as `chrf`.

    Random ones come from a fixed seed; the worst never equal their reference. Ties put the longer
    reference first.
    """
    metric = CHRF()
    scored = []
    for number, row in enumerate(rows, start=1):
        chrf = metric.sentence_score(row["hypothesis"], [row["reference"]]).score
        scored.append({**row, "number": number, "chrf": chrf})
    wrong = [row for row in scored if row["hypothesis"] != row["reference"]]

    best_first = sorted(scored, key=lambda row: (-row["chrf"], -len(row["reference"])))
    worst_first = sorted(wrong, key=lambda row: (row["chrf"], -len(row["reference"])))
    return {
        "random": drawn_rows(scored, count),
        "best": best_first[:count],
        "worst": worst_first[:count],
    }
