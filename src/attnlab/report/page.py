"""One offline page: what was run, the data, the curves, the metrics, and what a task has to show beside them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from attnlab.config.choice_name import choice_name
from attnlab.files import atomic_folder
from attnlab.plots.curves import learning_curves
from attnlab.plots.embedded_fonts import font_face_rules
from attnlab.plots.figure import png_bytes, save_png
from attnlab.plots.heat_map_html import environment
from attnlab.report import stage_files
from attnlab.report.read import as_text, flatten, read_history, read_json

# What was chosen: a word for it, and where it stands in the config.
_CHOICES = (
    ("data", "data"),
    ("tokenizer", "data.tokenizer"),
    ("padding", "padding"),
    ("encoder", "model.encoder"),
    ("bridge", "model.bridge"),
    ("attention", "model.attention"),
    ("projection", "model.projection"),
    ("normaliser", "model.normaliser"),
    ("scope", "model.scope"),
    ("coverage", "model.coverage"),
    ("heads", "model.heads"),
    ("decoder", "model.decoder"),
    ("readout", "model.readout"),
    ("input feeding", "model.input_feeding"),
    ("teacher forcing", "training.teacher_forcing"),
    ("batches", "training.batching"),
    ("optimizer", "training.optimizer"),
    ("schedule", "training.schedule"),
    ("search", "search"),
    ("hardware", "hardware"),
    ("seed", "seed"),
)
Metric = tuple[str, str, int, str]
"""label, which way is better, digits, what it is and what it averages over"""


@dataclass(frozen=True)
class Stages:
    """Where the other stages wrote: prepared data, learning curves, evaluation."""

    data: Path
    training: Path
    evaluation: Path


def write_page(
    template: str,
    config: Mapping[str, Any],
    choices: Mapping[str, str],
    stages: Stages,
    into: Path,
    *,
    title: Sequence[str],
    known: Mapping[str, Metric],
    headlines: Sequence[str],
    lengths: Figure,
    pictures: Mapping[str, Figure],
    more: Mapping[str, Any],
) -> None:
    """Write `into`/index.html, whole or not at all, and the same bytes for the same inputs.

    The histogram, the learning curves and `pictures` are also written to `into`/pictures/<name>.png, for programs that
    show pictures of several experiments side by side.

    Args:
        template: of the task, which extends base.html.
        config: the composed experiment, plain values.
        choices: {group: what was chosen}, as it is shown.
        title: words of it, put together with the choices of the model.
        known: the task's metrics, in the order of the page.
        headlines: those of them that stand on top.
        lengths: a histogram.
        pictures: by name.
        more: what the task's own template asks for.

    Raises:
        ExperimentError: a stage's file is missing or not readable.
    """
    metrics = read_json(stages.evaluation / "metrics.json", "evaluate", stage_files.Metrics)
    signatures = read_json(stages.evaluation / "signatures.json", "evaluate", stage_files.Signatures)
    curves = learning_curves(read_history(stages.training / "history.csv"))
    order = [name for name in known if name in metrics] + sorted(set(metrics) - set(known))
    content = {
        "title": " · ".join(title) or "experiment",
        "headlines": [_metric(known, name, metrics[name]) for name in headlines if metrics.get(name) is not None],
        "choices": _choices(config, choices),
        "config": flatten(config),
        "info": read_json(stages.data / "data.json", "prepare", stage_files.AnyObject),
        "stats": read_json(stages.data / "stats.json", "prepare", stage_files.AnyObject),
        "histogram": picture(lengths),
        "curves": picture(curves) if curves is not None else None,
        "metrics": [{**_metric(known, name, metrics[name]), "signature": signatures.get(name)} for name in order],
        "notes": {name: text for name, text in sorted(signatures.items()) if name not in metrics},
        **more,
    }
    page = environment("attnlab.report", "attnlab.plots").get_template(template)
    # The fonts depend on all characters of the page, so it is made once without them.
    font_faces = font_face_rules(page.render(**content, font_faces=""))
    with atomic_folder(into) as folder:
        (folder / "pictures").mkdir()
        drawn = {"lengths": lengths, **({} if curves is None else {"curves": curves}), **pictures}
        for name, figure in drawn.items():
            save_png(figure, folder / "pictures" / f"{name}.png")
        text = page.render(**content, font_faces=font_faces)
        (folder / "index.html").write_text(text, encoding="utf-8", newline="\n")


def chosen_names(config: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
    """The names of the choices at these places of the config, where it has a model at all."""
    names = [choice_name(_at(config, path)) for path in paths if "model" in config]
    return [name for name in names if name]


def picture(figure: Figure) -> str:
    """A figure as the address of an image that lies inside the page."""
    return "data:image/png;base64," + base64.b64encode(png_bytes(figure, dpi=140)).decode("ascii")


def _choices(config: Mapping[str, Any], choices: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row a choice: its name and its values, without the parts that have a row of their own."""
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
        rows.append({"label": label, "name": _name(path, node, choices), "values": flatten(values)})
    return rows


def _name(path: str, node: Any, choices: Mapping[str, str]) -> str:
    """What was chosen; where nobody noted it, the class in words, but for one that is called as its section is."""
    noted = choices.get(path.replace(".", "/"))
    if noted is not None:
        return noted
    of_class = choice_name(node) or ""
    return "" if of_class == path.rpartition(".")[2] else of_class


def _at(config: Mapping[str, Any], path: str) -> Any:
    node: Any = config
    for key in path.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _metric(known: Mapping[str, Metric], name: str, value: float | None) -> dict[str, Any]:
    label, better, digits, meaning = known.get(name, (name, "", 4, ""))
    shown = "–" if value is None else f"{value:,.{digits}f}"
    return {"label": label, "better": better, "value": shown, "meaning": meaning}
