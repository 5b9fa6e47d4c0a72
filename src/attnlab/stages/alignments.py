"""What each score aligns, on data whose alignments are known: exact match, alignment error rate, and offsets.

    python pipelines/studies/alignments.py --data reverse

Trains every score of conf/model/attention with several seeds. Writes alignments.png (how far beside the right source
token the attention looks), .csv (a row for each experiment), .md (means over the seeds) and .json (what the figures
stand on).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attnlab.experiment.rewording import CONF
from attnlab.stages.study import Point, StudyArguments, compose_points, evaluated, write_facts, write_table

NAME = "alignments"
WITH_KNOWN_ALIGNMENTS = ("dates", "copy", "reverse")
DECODERS = {"attend_then_step": "previous state asks", "step_then_attend": "current state asks"}
MEASURES = ("exact_match", "aer")
LEARNED = 0.99  # the exact match from which on a seed has learned the task


def measure(points: Sequence[Point]) -> Iterator[dict[str, Any]]:
    """A row for each experiment, its offsets among it."""
    for point, _, _, evaluation in evaluated(points):
        metrics, offsets = (
            json.loads((evaluation / name).read_text(encoding="utf-8"))
            for name in ("metrics.json", "alignment_offsets.json")
        )
        score, decoder = point.label.split(", ")
        measured = {name: metrics[name] for name in MEASURES}
        yield {"score": score, "decoder": decoder, "seed": point.seed, **measured, "offsets": offsets}


def summed_offsets(rows: Sequence[dict[str, Any]]) -> list[dict[str, int]]:
    """The offsets of several experiments, counted together."""
    counts: dict[int, int] = {}
    for row in rows:
        for found in row["offsets"]:
            counts[found["offset"]] = counts.get(found["offset"], 0) + found["tokens"]
    return [{"offset": offset, "tokens": counts[offset]} for offset in sorted(counts)]


def markdown(groups: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    """A table of how many seeds learned the task, and of the means over them (in brackets the least and greatest)."""
    lines = ["| score | decoder | learned | exact match | AER | most frequent offset |", "| --- " * 6 + "|"]
    for (score, decoder), rows in groups.items():
        offsets = summed_offsets(rows)
        total = sum(row["tokens"] for row in offsets)
        usual = max(offsets, key=lambda row: row["tokens"])
        values = " | ".join(_mean_and_range([row[name] for row in rows]) for name in MEASURES)
        share = f"{usual['offset']:+d} ({100 * usual['tokens'] / total:.0f} %)"
        learned = f"{sum(row['exact_match'] >= LEARNED for row in rows)} of {len(rows)}"
        lines.append(f"| {score} | {DECODERS[decoder]} | {learned} | {values} | {share} |")
    return "\n".join(lines) + "\n"


def _mean_and_range(values: Sequence[float]) -> str:
    mean = f"{sum(values) / len(values):.3f}"
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return mean if low == high else f"{mean} ({low}–{high})"


def main() -> None:
    every = sorted(path.stem for path in (CONF / "model" / "attention").glob("*.yaml") if path.stem != "none")
    parser = StudyArguments(__doc__, into=f"runs/{NAME}", seeds=(1, 2, 3))
    parser.add_argument("--data", default="reverse", choices=WITH_KNOWN_ALIGNMENTS, help="(%(default)s)")
    parser.several("--scores", every, "choices of model/attention")
    parser.several("--decoders", list(DECODERS), "choices of model/decoder")
    parser.number("--steps", 500, "training steps")
    arguments = parser.read()
    common = (f"data={arguments.data}", f"training.max_steps={arguments.steps}", "search=greedy", "tracking=none")
    varied = {
        f"{score}, {decoder}": (f"model/attention={score}", f"model/decoder={decoder}")
        for score in arguments.scores
        for decoder in arguments.decoders
    }
    points = compose_points(common, varied, arguments.seeds, arguments.settings)
    rows = list(measure(points))

    from attnlab.files import atomic_file
    from attnlab.plots.figure import save_png
    from attnlab.plots.histograms import offset_histogram

    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["score"], row["decoder"]), []).append(row)
    into: Path = arguments.into
    panels = {f"{score}, {DECODERS[decoder]}": summed_offsets(group) for (score, decoder), group in groups.items()}
    save_png(offset_histogram(panels), into / f"{NAME}.png")
    write_table(into / f"{NAME}.csv", [{**row, "offsets": json.dumps(row["offsets"])} for row in rows])
    with atomic_file(into / f"{NAME}.md") as temporary:
        temporary.write_text(markdown(groups), encoding="utf-8")
    write_facts(into / f"{NAME}.json", points, arguments)
    print(markdown(groups) + str(into / f"{NAME}.png"))
