"""The page of a translation: quality by length, sample translations, attention maps."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics import CHRF

from attnlab.evaluation.attention_map import load_maps
from attnlab.plots.curves import length_curve
from attnlab.plots.figure import PAGE_DPI, png_bytes
from attnlab.plots.heat_map import heat_map, heat_map_tables
from attnlab.plots.histograms import length_histogram, offset_histogram
from attnlab.plots.html import inline_png
from attnlab.report import stage_files
from attnlab.report.page import Metric, Stages, chosen_names, write_page
from attnlab.report.stage_files import read_json, read_lines

METRICS: dict[str, Metric] = {
    "bleu": ("BLEU", "↑", 2, "0–100, n-gram counts summed over the corpus; free-running"),
    "chrf": ("chrF2", "↑", 2, "0–100, character n-gram counts summed over the corpus; free-running"),
    "ter": ("TER", "↓", 2, "edits per 100 reference words, summed over the corpus; free-running"),
    "exact_match": ("exact match", "↑", 4, "0–1, share of sentences equal to the reference; free-running"),
    "token_nll": (
        "token NLL",
        "↓",
        4,
        "nats, mean over all real target tokens, <eos> included; reference fed",
    ),
    "perplexity": ("perplexity", "↓", 3, "exp of token NLL; reference fed"),
    "aer": ("AER", "↓", 4, "0–1, links summed over the corpus (Och and Ney 2003); reference fed"),
    "attention_entropy": (
        "attention entropy",
        "",
        4,
        "nats, mean over target tokens; 0 looks at one source token",
    ),
    "attention_coverage": ("attention coverage", "", 4, "0–1, mean over source tokens; 1 attended to all of them"),
    "attention_diagonality": (
        "attention diagonality",
        "",
        4,
        "mean over target tokens; 1 on the diagonal, 0.56 if uniform",
    ),
    "attention_pad_mass": ("attention on pads", "", 4, "0–1, mean over target tokens"),
    "sentences": ("sentences", "", 0, "in the test split"),
    "target_tokens": ("target tokens", "", 0, "real ones, <eos> included"),
}
_PICTURES = 4  # heat maps beside the page
_WRONG = 8  # target tokens with wrong links that the page lists
_HEADLINES = ("bleu", "chrf", "exact_match", "perplexity", "aer")


def write_translation_report(config: Mapping[str, Any], choices: Mapping[str, str], stages: Stages, into: Path) -> None:
    """Write `into`/index.html; see `write_page`."""
    info = read_json(stages.data / "data.json", "prepare", stage_files.PairInfo)
    train = read_json(stages.data / "stats.json", "prepare", stage_files.PairStats)["splits"]["train"]
    buckets = read_json(stages.evaluation / "by_length.json", "evaluate", list[stage_files.OfLength])
    offsets = read_json(stages.evaluation / "alignment_offsets.json", "evaluate", list[stage_files.Offset])
    wrong_links = read_json(stages.evaluation / "wrong_links.json", "evaluate", list[stage_files.WrongLink])
    maps_file = stages.evaluation / "attention.npz"
    maps = load_maps(maps_file) if maps_file.is_file() else []
    languages = [info.get("source_language"), info.get("target_language")]
    write_page(
        "translation.html",
        config,
        choices,
        stages,
        into,
        title=[
            *([" → ".join(map(str, languages))] if all(languages) else []),
            *chosen_names(config, ("model.attention", "model.decoder")),
        ],
        known=METRICS,
        headlines=_HEADLINES,
        lengths=length_histogram({side: dict(train[side]["length_histogram"]) for side in ("source", "target")}),
        pictures={
            f"attention_{number}": png_bytes(heat_map(each)) for number, each in enumerate(maps[:_PICTURES], start=1)
        },
        more={
            "by_length": buckets,
            "length_curve": inline_png(png_bytes(length_curve(buckets), PAGE_DPI)) if buckets else None,
            "samples": sample_translations(read_lines(stages.evaluation / "hypotheses.jsonl", stage_files.Translated)),
            "offsets": inline_png(png_bytes(offset_histogram({"": offsets}), PAGE_DPI)) if offsets else None,
            "wrong_links": [row for row in wrong_links if row["wrong"]][:_WRONG],
            "linked_tokens": len(wrong_links),
            "tables": heat_map_tables(maps),
        },
    )


def sample_translations(rows: Sequence[dict[str, Any]], count: int = 5) -> dict[str, list[dict[str, Any]]]:
    """{"random", "best", "worst"}: `count` rows each, with their sentence-level chrF2 as `chrf`.

    Random ones come from a fixed seed; the worst never equal their reference. Ties put the longer reference first.
    """
    metric = CHRF()
    scores = [metric.sentence_score(row["hypothesis"], [row["reference"]]).score for row in rows]
    everywhere = range(len(rows))
    wrong = [index for index, row in enumerate(rows) if row["hypothesis"] != row["reference"]]

    def length(index: int) -> int:
        return len(rows[index]["reference"])

    chosen = {
        "random": sorted(random.Random(0).sample(everywhere, min(count, len(rows)))),
        "best": sorted(everywhere, key=lambda i: (-scores[i], -length(i), i))[:count],
        "worst": sorted(wrong, key=lambda i: (scores[i], -length(i), i))[:count],
    }
    return {
        name: [{**rows[index], "chrf": scores[index], "number": index + 1} for index in indices]
        for name, indices in chosen.items()
    }
