"""The study of how much of a translation hangs on the attention: see pipelines/studies/interventions.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attnlab.files import atomic_file
from attnlab.stages.study import Point, compose_points, study_parser, trained, write_study

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
            cells = []
            for table, places in zip(tables, (1, 3), strict=True):
                values = table[score][name]
                spread = f" ({min(values):.{places}f}–{max(values):.{places}f})" if len(values) > 1 else ""
                cells.append(f"{sum(values) / len(values):.{places}f}{spread}")
            lines.append(f"| {score} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = study_parser(NAME)
    parser.add_argument("--data", default="dates", help="a choice of conf/data with sentence pairs (%(default)s)")
    parser.add_argument("--scores", type=lambda text: text.split(","), default=SCORES, help=f"({','.join(SCORES)})")
    parser.add_argument("--steps", type=int, default=500, help="training steps (%(default)s)")
    arguments = parser.parse_intermixed_args()
    common = (f"data={arguments.data}", f"training.max_steps={arguments.steps}", "search=greedy", "tracking=none")
    varied = {score: (f"model/attention={score}",) for score in arguments.scores}
    points = compose_points(common, varied, arguments.seeds, arguments.settings)
    rows = list(measure(points))

    from attnlab.plots.histograms import grouped_bars

    table = markdown(rows)
    with atomic_file(arguments.into / f"{NAME}.md") as temporary:
        temporary.write_text(table, encoding="utf-8")
    panels = {label: means(rows, measured) for measured, label in MEASURES.items()}
    print(table + str(write_study(NAME, arguments, points, rows, grouped_bars(panels))))
