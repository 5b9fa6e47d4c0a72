"""The study of how much of a translation hangs on the attention: see pipelines/studies/interventions.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attnlab.stages.study import Point, compose_points, mean_and_range, study_parser, trained, write_study

NAME = "interventions"
SCORES = ("bahdanau", "dot", "general", "scaled_dot")
MEASURES = {"bleu": "BLEU", "exact_match": "exact match"}


# What is changed; hidden attention sees nothing, so that the context is zero.
CHANGES = {
    "as trained": {},
    "uniform": {"kind": "uniform"},
    "permuted": {"kind": "permuted"},
    "hidden": {"hide": "all"},
}


def measure(points: Sequence[Point]) -> Iterator[dict[str, Any]]:
    """A row for each model and intervention, over the whole test split."""
    from attnlab.evaluation.text_metrics import TextMetrics
    from attnlab.inference.translator import Translator
    from attnlab.model.attention.intervention import Intervention

    for point, data, folder in trained(points):
        translator, split = Translator.load(folder / "model"), data.split("test")
        sources = [split.source_text(row) for row in range(len(split))]
        references = [split.target_text(row) for row in range(len(split))]
        for name, values in CHANGES.items():
            metrics = TextMetrics(data.info.bleu_tokenize, ter=False)
            answers = translator.stream(sources, intervene=Intervention(**values), with_attention=False)  # type: ignore[arg-type]
            metrics.update([answer.text for answer in answers], references)
            found = metrics.compute()
            measured = {measure: found[measure] for measure in MEASURES}
            yield {"score": point.label, "attention": name, "seed": point.seed, **measured, "sentences": len(split)}


def means(rows: Sequence[Mapping[str, Any]], measured: str) -> dict[str, dict[str, list[float]]]:
    """{score: {intervention: the value of each seed}}."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        found.setdefault(row["score"], {}).setdefault(row["attention"], []).append(row[measured])
    return found


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The means over the seeds, and in brackets the least and the greatest."""
    header = ["score", "attention", *MEASURES.values()]
    lines = [f"| {' | '.join(header)} |", "| --- " * len(header) + "|"]
    tables = [means(rows, measured) for measured in MEASURES]
    for score, changes in tables[0].items():
        for name in changes:
            cells = [mean_and_range(table[score][name], places) for table, places in zip(tables, (1, 3), strict=True)]
            lines.append(f"| {score} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = study_parser(NAME, steps=500)
    parser.add_argument("--data", default="dates", help="a choice of conf/data with sentence pairs (%(default)s)")
    parser.add_argument("--scores", type=lambda text: text.split(","), default=SCORES, help=f"({','.join(SCORES)})")
    arguments = parser.parse_intermixed_args()
    varied = {score: (f"model/attention={score}",) for score in arguments.scores}
    points = compose_points(arguments, [f"data={arguments.data}"], varied)
    rows = list(measure(points))

    from attnlab.plots.histograms import grouped_bars

    panels = {label: means(rows, measured) for measured, label in MEASURES.items()}
    write_study(NAME, arguments, points, rows, grouped_bars(panels), markdown(rows))
