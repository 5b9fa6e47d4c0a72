"""The section of a translation's report: quality by length, samples, attention, alignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap, load_maps
from attnlab.evaluation.corpus_metric import CorpusMetric
from attnlab.evaluation.evaluation_files import EvaluationFiles, read_json, read_lines
from attnlab.evaluation.examples import ATTENTION, LONGEST_PAIR, WORST, Examples, read_examples
from attnlab.evaluation.measures import read_measures
from attnlab.plots.curves import length_curve, ranges_without
from attnlab.plots.heat_map import HeatMap
from attnlab.plots.heat_map_figure import heat_map_figure
from attnlab.plots.histograms import length_histogram, offset_histogram
from attnlab.tasks.report_section import Content, ReportSection, drawn_rows
from attnlab.tasks.translation.report.marks import marked_texts
from attnlab.tasks.translation.sentence_scores import sentence_scores, worst_rows

_HEAT_MAPS = 4  # beside the page
_WRONG_LINKS = 8
_SENTENCES = 5  # of the best and of random ones
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
        rows = read_lines(evaluation / self.sentences_file)
        scores = sentence_scores(rows)
        examples = read_examples(evaluation)
        if examples is None:
            examples = _examples_of_titles(load_maps(evaluation / ATTENTION), rows, scores)

        train = stats["splits"]["train"]
        lengths = {side: dict(train[side]["length_histogram"]) for side in ("source", "target")}
        figures = {"lengths": length_histogram(lengths)}
        if by_length:
            figures["length_curve"] = length_curve(by_length)
        if offsets:
            figures["offsets"] = offset_histogram(offsets)
        for number, each in enumerate(examples.typical_maps[:_HEAT_MAPS], start=1):
            figures[f"attention_{number}"] = heat_map_figure(each)

        def sentence(row: int) -> dict[str, Any]:
            return _shown_sentence(rows[row], row, scores[row])

        numbers = [{"row": row} for row in range(len(rows))]
        drawn = [each["row"] for each in drawn_rows(numbers, _SENTENCES)]
        content = {
            "by_length": by_length,
            "without_bleu": ranges_without("bleu", by_length),
            "wrong_links": [row for row in wrong_links if row["wrong"]][:_WRONG_LINKS],
            "linked_tokens": len(wrong_links),
            "worst": [sentence(row) for row in examples.worst],
            "worst_maps": _heat_maps(examples.worst_maps),
            "typical": [sentence(row) for row in examples.typical],
            "typical_maps": _heat_maps(examples.typical_maps),
            "best": [sentence(row) for row in best_rows(rows, scores)],
            "random": [sentence(row) for row in drawn],
            "longest": LONGEST_PAIR,
        }
        return content, figures

    def metrics_of(
        self, evaluations: Sequence[EvaluationFiles]
    ) -> list[Mapping[str, CorpusMetric]]:
        # Imported here: torchmetrics takes a second, and listing the measures needs none of it.
        from attnlab.tasks.translation.metrics import metrics_of_references, metrics_of_signatures

        # Evaluations that split texts alike share their metrics, because these cache words.
        of_splitting: dict[tuple[str, ...], Mapping[str, CorpusMetric]] = {}
        found: list[Mapping[str, CorpusMetric]] = []
        for evaluation in evaluations:
            splitting = tuple(evaluation.signatures.get(name, "") for name in _SPLITTING)
            if splitting not in of_splitting:
                of_splitting[splitting] = metrics_of_signatures(evaluation.signatures)
            of_texts = of_splitting[splitting]
            found.append({**of_texts, **metrics_of_references(evaluation.sentences)})
        return found

    def guessed_sources(self, evaluation: EvaluationFiles) -> list[str]:
        # The title of a translation's map is `source → hypothesis`; a source may contain an arrow.
        sources = {row["source"] for row in evaluation.sentences}
        longest_first = sorted(sources, key=len, reverse=True)
        found = []
        for each in evaluation.maps:
            fitting = (text for text in longest_first if each.title.startswith(f"{text} → "))
            found.append(next(fitting, each.title))
        return found

    def drawn(self, attention: AttentionMap, row: Mapping[str, Any]) -> dict[str, Any]:
        untitled = replace(attention, title="")
        return {"text": row.get(self.answer_key), "heat_map": HeatMap.of(untitled)}


def best_rows(rows: Sequence[Mapping[str, Any]], scores: Sequence[float]) -> list[int]:
    """A few rows, the highest score first; ties put the longer reference first."""
    best_first = sorted(
        range(len(rows)), key=lambda row: (-scores[row], -len(rows[row]["reference"]))
    )
    return best_first[:_SENTENCES]


def _examples_of_titles(
    maps: Sequence[AttentionMap], rows: Sequence[Mapping[str, Any]], scores: Sequence[float]
) -> Examples:
    """The examples of an evaluation that does not name them: the sentences whose maps it has.

    The title of a map says which sentence it belongs to, `source → hypothesis`.
    """
    row_of_title = {f"{row['source']} → {row['hypothesis']}": i for i, row in enumerate(rows)}
    map_of_row = {}
    for each in maps:
        row = row_of_title.get(each.title)
        if row is not None:
            map_of_row[row] = each
    with_maps = sorted(map_of_row)
    worst = worst_rows(rows, scores, with_maps or range(len(rows)), WORST)
    typical = [row for row in with_maps if row not in worst]
    return Examples(
        typical=typical,
        worst=worst,
        typical_maps=[map_of_row[row] for row in typical],
        worst_maps=[map_of_row[row] for row in worst if with_maps],
    )


def _shown_sentence(record: Mapping[str, Any], row: int, score: float) -> dict[str, Any]:
    """A sentence for the page, with its differences marked."""
    hypothesis, reference = marked_texts(record["hypothesis"], record["reference"])
    return {
        **record,
        "number": row + 1,
        "chrf": score,
        "hypothesis": hypothesis,
        "reference": reference,
    }


def _heat_maps(maps: Sequence[AttentionMap]) -> list[HeatMap]:
    """Descriptions without titles: the sentence stands above the map."""
    return [HeatMap.of(replace(each, title="")) for each in maps]
