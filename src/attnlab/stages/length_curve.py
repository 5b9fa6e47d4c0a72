"""The study of quality by source length, with and without attention: see pipelines/studies/length_curve.py."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from attnlab.stages.study import Point, compose_points, evaluated, study_parser, table_of, write_study

if TYPE_CHECKING:
    from attnlab.plots.systems import SeededCurve

NAME = "length_curve"
SHORTEST = 4  # BLEU counts n-grams of up to four tokens; it is 0 for shorter sequences
COMMON = (
    "data=copy",
    "data.num_pairs=8000",
    "data.num_symbols=10",
    "data.test_fraction=0.15",
    f"data.min_length={SHORTEST}",
    f"data.test_min_length={SHORTEST}",
)
VARIED = {"with attention": ("model/attention=bahdanau",), "without attention": ("model/attention=none",)}
MEASURES = {"BLEU": "bleu", "exact match (%)": "exact_match"}


def measure(points: Sequence[Point]) -> Iterator[dict[str, Any]]:
    """A row for each experiment and length of the test split."""
    from attnlab.evaluation.text_metrics import by_length

    for point, data, evaluation in evaluated(points):
        with (evaluation / "hypotheses.jsonl").open(encoding="utf-8") as lines:
            sentences = [json.loads(line) for line in lines]
        names = ("source_length", "hypothesis", "reference")
        lengths, hypotheses, references = ([row[name] for row in sentences] for name in names)
        ranges = [(length, length) for length in sorted(set(lengths))]
        for row in by_length(lengths, hypotheses, references, data.info.bleu_tokenize, ranges):
            measured = {name: row[name] for name in ("sentences", "bleu", "exact_match")}
            yield {"model": point.label, "seed": point.seed, "length": row["from"], **measured}


def panels(rows: Sequence[dict[str, Any]]) -> dict[str, list[SeededCurve]]:
    """{measure: a curve for each model}, over the seeds, 0..100."""
    from attnlab.plots.systems import SeededCurve

    found: dict[str, list[SeededCurve]] = {}
    for title, measured in MEASURES.items():
        scale = 1 if measured == "bleu" else 100
        for number, label in enumerate(VARIED):
            lengths, values = table_of([row for row in rows if row["model"] == label], "length", measured)
            found.setdefault(title, []).append(SeededCurve(label, lengths, scale * values, number))
    return found


def main() -> None:
    parser = study_parser(NAME, steps=1500)
    parser.add_argument("--length", type=int, default=10, help="symbols of a training sequence at most (%(default)s)")
    parser.add_argument("--test-length", type=int, default=30, help="symbols of a test sequence at most (%(default)s)")
    arguments = parser.parse_intermixed_args()
    common = (*COMMON, f"data.max_length={arguments.length}", f"data.test_max_length={arguments.test_length}")
    points = compose_points(arguments, common, VARIED)
    rows = list(measure(points))

    from attnlab.plots.systems import length_generalisation_figure

    figure = length_generalisation_figure(panels(rows), (SHORTEST, arguments.length))
    write_study(NAME, arguments, points, rows, figure)
