"""The length curve: quality by source length, with and without attention, far beyond the lengths of the training.

    python pipelines/studies/length_curve.py

After figure 2 of Bahdanau et al. 2015 and Cho et al. 2014 ("On the properties of neural machine translation"), on
sequences to copy. Writes length_curve.png, .csv and .json (what the figures stand on).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.stages.study import Point, StudyArguments, compose_points, evaluated, write_facts, write_table

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
    "search=greedy",
    "tracking=none",
)
VARIED = {
    "with attention": ("model/attention=bahdanau",),
    "without attention": ("model/attention=none",),
}
MEASURES = {"BLEU": "bleu", "exact match (%)": "exact_match"}


def measure(points: Sequence[Point]) -> Iterator[dict[str, Any]]:
    """A row for each experiment and length of the test split."""
    from attnlab.evaluation.text_metrics import by_length

    for point, data, _, evaluation in evaluated(points):
        with (evaluation / "hypotheses.jsonl").open(encoding="utf-8") as lines:
            sentences = [json.loads(line) for line in lines]
        lengths = [sentence["source_length"] for sentence in sentences]
        for row in by_length(
            lengths,
            [sentence["hypothesis"] for sentence in sentences],
            [sentence["reference"] for sentence in sentences],
            data.info.bleu_tokenize,
            [(length, length) for length in sorted(set(lengths))],
        ):
            yield {
                "model": point.label,
                "seed": point.seed,
                "length": row["from"],
                "sentences": row["sentences"],
                "bleu": row["bleu"],
                "exact_match": row["exact_match"],
            }


def panels(rows: Sequence[dict[str, Any]]) -> dict[str, list[SeededCurve]]:
    """{measure: a curve for each model}, over the seeds, 0..100."""
    import numpy as np

    from attnlab.plots.systems import SeededCurve

    lengths, seeds = (sorted({row[name] for row in rows}) for name in ("length", "seed"))
    found: dict[str, list[SeededCurve]] = {}
    for title, measured in MEASURES.items():
        for number, label in enumerate(VARIED):
            values = np.full((len(seeds), len(lengths)), np.nan)
            for row in rows:
                if row["model"] == label:
                    value = row[measured] * (1 if measured == "bleu" else 100)
                    values[seeds.index(row["seed"]), lengths.index(row["length"])] = value
            found.setdefault(title, []).append(SeededCurve(label, lengths, values, number))
    return found


def main() -> None:
    parser = StudyArguments(__doc__, into=f"runs/{NAME}", seeds=(1, 2, 3))
    parser.number("--steps", 1500, "training steps")
    parser.number("--length", 10, f"symbols of a training sequence at most, and {SHORTEST} at least")
    parser.number("--test-length", 30, "symbols of a test sequence at most")
    arguments = parser.read()
    common = (
        *COMMON,
        f"data.max_length={arguments.length}",
        f"data.test_max_length={arguments.test_length}",
        f"training.max_steps={arguments.steps}",
    )
    points = compose_points(common, VARIED, arguments.seeds, arguments.settings)
    rows = list(measure(points))

    from attnlab.plots.figure import save_png
    from attnlab.plots.systems import length_generalisation_figure

    into: Path = arguments.into
    figure = length_generalisation_figure(panels(rows), (SHORTEST, arguments.length))
    save_png(figure, into / f"{NAME}.png")
    write_table(into / f"{NAME}.csv", rows)
    write_facts(into / f"{NAME}.json", points, arguments)
    print(into / f"{NAME}.png")
