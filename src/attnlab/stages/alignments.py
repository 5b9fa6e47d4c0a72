"""The study of what each score aligns, on data whose alignments are known: see pipelines/studies/alignments.py."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from attnlab.experiment.hydra_config import CONF
from attnlab.stages.study import Point, compose_points, evaluated, mean_and_range, study_parser, write_study

NAME = "alignments"
WITH_KNOWN_ALIGNMENTS = ("dates", "copy", "reverse")
DECODERS = {"attend_then_step": "previous state asks", "step_then_attend": "current state asks"}
MEASURES = ("exact_match", "aer")
LEARNED = 0.99  # the exact match from which on a seed has learned the task


def measure(points: Sequence[Point]) -> Iterator[dict[str, Any]]:
    """A row for each experiment, its offsets among it."""
    for point, _, evaluation in evaluated(points):
        metrics, offsets = (
            json.loads((evaluation / name).read_text(encoding="utf-8"))
            for name in ("metrics.json", "alignment_offsets.json")
        )
        score, decoder = point.label.split(", ")
        measured = {name: metrics[name] for name in MEASURES}
        yield {"score": score, "decoder": decoder, "seed": point.seed, **measured, "offsets": offsets}


def summed_offsets(rows: Sequence[dict[str, Any]]) -> list[dict[str, int]]:
    """The offsets of several experiments, counted together."""
    counts: Counter[int] = Counter()
    for row in rows:
        counts.update({found["offset"]: found["tokens"] for found in row["offsets"]})
    return [{"offset": offset, "tokens": counts[offset]} for offset in sorted(counts)]


def markdown(groups: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    """A table of how many seeds learned the task, and of the means over them (in brackets the least and greatest)."""
    lines = ["| score | decoder | learned | exact match | AER | most frequent offset |", "| --- " * 6 + "|"]
    for (score, decoder), rows in groups.items():
        offsets = summed_offsets(rows)
        total = sum(row["tokens"] for row in offsets)
        usual = max(offsets, key=lambda row: row["tokens"])
        values = " | ".join(mean_and_range([row[name] for row in rows], places=3) for name in MEASURES)
        share = f"{usual['offset']:+d} ({100 * usual['tokens'] / total:.0f} %)"
        learned = f"{sum(row['exact_match'] >= LEARNED for row in rows)} of {len(rows)}"
        lines.append(f"| {score} | {DECODERS[decoder]} | {learned} | {values} | {share} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    every = sorted(path.stem for path in (CONF / "model" / "attention").glob("*.yaml") if path.stem != "none")
    parser = study_parser(NAME, steps=500)
    parser.add_argument("--data", default="reverse", choices=WITH_KNOWN_ALIGNMENTS, help="(%(default)s)")
    for option, choices in (("--scores", every), ("--decoders", list(DECODERS))):
        parser.add_argument(option, type=lambda text: text.split(","), default=choices, help=f"({','.join(choices)})")
    arguments = parser.parse_intermixed_args()
    varied = {
        f"{score}, {decoder}": (f"model/attention={score}", f"model/decoder={decoder}")
        for score in arguments.scores
        for decoder in arguments.decoders
    }
    points = compose_points(arguments, [f"data={arguments.data}"], varied)
    rows = list(measure(points))

    from attnlab.plots.histograms import offset_histogram

    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["score"], row["decoder"]), []).append(row)
    panels = {f"{score}, {DECODERS[decoder]}": summed_offsets(group) for (score, decoder), group in groups.items()}
    written = [{**row, "offsets": json.dumps(row["offsets"])} for row in rows]
    write_study(NAME, arguments, points, written, offset_histogram(panels), markdown(groups))
