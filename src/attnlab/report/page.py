"""One offline page: what was run, the data, the curves, the metrics, translations, attention."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from attnlab.composition.atomic import atomic_file
from attnlab.composition.choice_name import choice_name
from attnlab.evaluation.attention_map import load_maps
from attnlab.plots.curves import learning_curves
from attnlab.plots.embedded_fonts import font_face_rules
from attnlab.plots.figure import png_bytes
from attnlab.plots.heat_map_html import environment, heat_map_tables
from attnlab.plots.length_curve import length_curve
from attnlab.plots.length_histogram import length_histogram
from attnlab.report.read import as_text, flatten, read_history, read_hypotheses, read_json
from attnlab.report.samples import sample_translations

# What was chosen: a word for it, and where it stands in the config.
_CHOICES = (
    ("data", "data"),
    ("tokenizer", "data.tokenizer"),
    ("padding", "padding"),
    ("encoder", "model.encoder"),
    ("bridge", "model.bridge"),
    ("attention", "model.attention"),
    ("decoder", "model.decoder"),
    ("teacher forcing", "training.teacher_forcing"),
    ("batches", "training.batching"),
    ("optimizer", "training.optimizer"),
    ("schedule", "training.schedule"),
    ("search", "search"),
    ("hardware", "hardware"),
    ("seed", "seed"),
)
# name: (label, which way is better, digits, what it is and what it averages over)
_METRICS = {
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
    "attention_pad_mass": ("attention on pads", "", 4, "0–1, mean over target tokens"),
    "sentences": ("sentences", "", 0, "in the test split"),
    "target_tokens": ("target tokens", "", 0, "real ones, <eos> included"),
}
_HEADLINES = ("bleu", "chrf", "exact_match", "perplexity", "aer")


def write_report(config: Mapping[str, Any], data: Path, training: Path, evaluation: Path, into: Path) -> None:
    """Write `into`/index.html, the same bytes for the same inputs.

    config: the composed experiment, plain values.
    data: the prepared data (data.json, stats.json).
    training: the folder with history.csv (step, epoch, name, value).
    evaluation: the evaluation folder.

    Raises:
        ExperimentError: a stage's file is missing or not readable.
    """
    info = read_json(data / "data.json", "prepare")
    stats = read_json(data / "stats.json", "prepare")
    metrics = read_json(evaluation / "metrics.json", "evaluate")
    signatures = read_json(evaluation / "signatures.json", "evaluate")
    buckets = read_json(evaluation / "by_length.json", "evaluate")
    maps_file = evaluation / "attention.npz"
    maps = load_maps(maps_file) if maps_file.is_file() else []
    curves = learning_curves(read_history(training / "history.csv"))

    content = {
        "title": _title(info, config),
        "headlines": [_metric(name, metrics[name]) for name in _HEADLINES if metrics.get(name) is not None],
        "choices": _choices(config),
        "config": flatten(config),
        "info": info,
        "stats": stats,
        "histogram": _picture(_training_lengths(stats)),
        "curves": _picture(curves) if curves is not None else None,
        "metrics": [{**_metric(name, metrics[name]), "signature": signatures.get(name)} for name in _order(metrics)],
        "notes": {name: text for name, text in sorted(signatures.items()) if name not in metrics},
        "by_length": buckets,
        "length_curve": _picture(length_curve(buckets)) if buckets else None,
        "samples": sample_translations(read_hypotheses(evaluation / "hypotheses.jsonl")),
        "tables": heat_map_tables(maps),
    }
    page = environment("attnlab.report", "attnlab.plots").get_template("page.html")
    # The fonts depend on all characters of the page, so it is made once without them.
    font_faces = font_face_rules(page.render(**content, font_faces=""))
    with atomic_file(Path(into) / "index.html") as temporary:
        temporary.write_text(page.render(**content, font_faces=font_faces), encoding="utf-8", newline="\n")


def _title(info: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    languages = [info.get("source_language"), info.get("target_language")]
    pair = " → ".join(map(str, languages)) if all(languages) else ""
    names = [choice_name(_at(config, path)) for path in ("model.attention", "model.decoder") if "model" in config]
    return " · ".join([*filter(None, [pair, *names])]) or "experiment"


def _choices(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a choice: its class and its values, without the parts that have a row of their own."""
    rows: list[dict[str, Any]] = []
    for label, path in _CHOICES:
        node = _at(config, path)
        if node is None and path != "model.attention":
            continue
        if node is not None and not isinstance(node, Mapping):
            rows.append({"label": label, "name": as_text(node), "values": []})
            continue
        own_rows = {other.rpartition(".")[2] for _, other in _CHOICES if other.rpartition(".")[0] == path}
        values = {key: value for key, value in (node or {}).items() if key != "_target_" and key not in own_rows}
        rows.append({"label": label, "name": choice_name(node) or "", "values": flatten(values)})
    return rows


def _at(config: Mapping[str, Any], path: str) -> Any:
    node: Any = config
    for key in path.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _order(metrics: Mapping[str, Any]) -> list[str]:
    """The metrics we know in our order, then any others."""
    return [name for name in _METRICS if name in metrics] + sorted(set(metrics) - set(_METRICS))


def _metric(name: str, value: float | None) -> dict[str, Any]:
    label, better, digits, meaning = _METRICS.get(name, (name, "", 4, ""))
    shown = "–" if value is None else f"{value:,.{digits}f}"
    return {"label": label, "better": better, "value": shown, "meaning": meaning}


def _training_lengths(stats: Mapping[str, Any]) -> Figure:
    train = stats["splits"]["train"]
    sides = [dict(map(tuple, train[side]["length_histogram"])) for side in ("source", "target")]
    return length_histogram(*sides)


def _picture(figure: Figure) -> str:
    """A figure as the address of an image that lies inside the page."""
    return "data:image/png;base64," + base64.b64encode(png_bytes(figure, dpi=140)).decode("ascii")
