"""How the attention of a model formed: maps of its training's validations, and their curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.api import is_in_mlflow
from attnlab.evaluation.attention_map import AttentionMap, evenly_spaced
from attnlab.evaluation.evaluation_files import read_history
from attnlab.evaluation.formed_attention import has_formed, read_validations
from attnlab.model.model_folder import read_facts

MOST_VALIDATIONS = 100
MOST_POINTS = 200  # of a curve
DECIMALS = 3  # of a weight
LOSSES = ("validation/teacher_forced/token_nll", "validation/nll")
METRICS = ("exact_match", "bleu", "accuracy")  # where the monitor of the training is no metric

Points = Sequence[tuple[int, float]]


def trainings_of(models: Iterable[str], downloads: Path | None = None) -> dict[str, Path]:
    """The folder of the training of each model that has one with maps; models as `load` takes.

    downloads: a folder for what MLflow has of its models; None leaves these out.
    """
    found = {}
    for number, name in enumerate(models):
        if is_in_mlflow(name):
            training = None if downloads is None else downloaded(name, downloads / str(number))
        else:
            training = training_of(Path(name))
        if training is not None:
            found[name] = training
    return found


def downloaded(model: str, folder: Path) -> Path | None:
    """The folder, with the maps and curves of the training of a model in MLflow; None for none."""
    from attnlab.runs.stored_models import download_formed  # costs an import of mlflow

    return folder if download_formed(model, folder, MOST_VALIDATIONS) else None


def training_of(folder: Path) -> Path | None:
    """Where the training of a model folder kept its maps; None for none.

    A runs folder above the model, or in a folder above it, has the training under the identity of
    its experiment. Else it is `training` beside the model, where DVC puts it.
    """
    folder = folder.resolve()
    if not (folder / "model.json").is_file():
        return None  # a model that was made in memory
    point = Path("points", read_facts(folder).identity, "training")
    candidates = []
    for above in folder.parents:
        candidates += [above / point, above / "runs" / point]
    candidates.append(folder.parent / "training")
    for candidate in candidates:
        if has_formed(candidate):
            return candidate
    return None


def formed(
    training: Path, config: Mapping[str, Any] | None, most: int = MOST_VALIDATIONS
) -> dict[str, Any]:
    """The answer to the page's question `formed`.

    Args:
        config: of the model; its training's monitor is the metric.
        most: validations, evenly spaced.

    Returns:
        `steps` of the validations; `sentences`, each with its `source` tokens and `maps`, one a
        step: `target`, `attention`, and `marks` as `marks` gives them, or null where none are
        known; a map is null where the validation has none of the sentence. `loss`, its points
        [step, value], and `metric` with `name` and `points`; null where the history has none.

    Raises ExperimentError for a file that cannot be read.
    """
    validations = read_validations(training, most)
    history_file = training / "history.csv"
    history = read_history(history_file) if history_file.is_file() else {}
    losses = [history[name] for name in LOSSES if history.get(name)]
    return {
        "steps": [step for step, _ in validations],
        "sentences": _sentences([maps for _, maps in validations]),
        "loss": _thinned(losses[0]) if losses else None,
        "metric": _metric(history, config),
    }


def _sentences(validations: Sequence[Sequence[AttentionMap]]) -> list[dict[str, Any]]:
    """The maps of each sentence, one a validation; a sentence goes by its source tokens."""
    sentences: dict[tuple[str, ...], list[dict[str, Any] | None]] = {}
    for number, maps in enumerate(validations):
        for attention_map in maps:
            source = tuple(attention_map.source_tokens)
            of_steps = sentences.setdefault(source, [None] * len(validations))
            of_steps[number] = _as_json(attention_map)
    return [{"source": list(source), "maps": maps} for source, maps in sentences.items()]


def _as_json(attention_map: AttentionMap) -> dict[str, Any]:
    # Those of a diverged training may be no numbers.
    weights = np.nan_to_num(attention_map.weights.astype(np.float64))
    marks = None
    if attention_map.wrong_targets is not None:
        marks = {
            "sure": attention_map.sure_links.tolist(),
            "possible": attention_map.possible_links.tolist(),
            "wrong": attention_map.wrong_targets,
        }
    return {
        "target": attention_map.target_tokens,
        "attention": weights.round(DECIMALS).tolist(),
        "marks": marks,
    }


def _metric(
    history: Mapping[str, Points], config: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The validations' values of the training's monitor, or else of the task's usual metric."""
    of_validation = {}
    for name, points in history.items():
        if name.startswith("validation/") and name not in LOSSES and points:
            of_validation[name.rpartition("/")[2]] = points
    training = (config or {}).get("training") or {}
    monitor = str(training.get("monitor")).rpartition("/")[2]
    for name in (monitor, *METRICS):
        if name in of_validation:
            return {"name": name, "points": _thinned(of_validation[name])}
    return None


def _thinned(points: Points) -> list[tuple[int, float]]:
    kept = evenly_spaced(np.arange(len(points)), MOST_POINTS)
    return [(points[i][0], float(f"{points[i][1]:.5g}")) for i in kept]
