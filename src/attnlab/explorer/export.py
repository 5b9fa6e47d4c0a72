"""One HTML file that runs trained models in a browser: the explorer's page with an engine in it.

The engine, `engine/`, computes in plain JavaScript what the server would answer. It knows the
classes that `supported.py` lists; every other class is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.api import load
from attnlab.errors import ExperimentError
from attnlab.explorer.exported_model import exported, size_of_weights
from attnlab.explorer.exported_page import compact, html_page
from attnlab.explorer.formed import formed, trainings_of
from attnlab.explorer.served_models import describe, model_title, open_data, page_of, pairs_of
from attnlab.explorer.supported import unsupported
from attnlab.files import atomic_file
from attnlab.model.model_folder import ForeignCodeError
from attnlab.tasks.predictor import Predictor

# How the attention formed takes at most so many bytes of a page for each model, with as many
# validations as fit.
MOST_FORMED = 200_000
VALIDATIONS = (100, 50, 25, 12)
# Chromium reads no text of more than 512 MB.
MOST_WEIGHTS = 400_000_000


def export(models: Sequence[str], path: Path, data: Path | None = None) -> None:
    """Write a page that runs some models.

    Args:
        models: model folders, or what else `attnlab.api.load` takes.
        path: of the page.
        data: a folder of prepared data, whose test pairs the page offers.

    Raises ExperimentError for a model that cannot be loaded or exported, with all that speaks
    against it.
    """
    with tempfile.TemporaryDirectory(prefix="attnlab-") as downloads:
        page = page_with(load_all(models), data, Path(downloads))
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def load_all(models: Sequence[str]) -> dict[str, Predictor]:
    """The models by their names.

    Raises ExperimentError as `export`, also for models with classes outside of attnlab, whose code
    is not run.
    """
    predictors = {}
    problems = []
    for name in models:
        try:
            predictors[name] = load(name)
        except ForeignCodeError as error:
            problems.append(
                f"{name}: {error.section} names {', '.join(error.classes)}, which an exported page "
                "cannot compute; it computes choices of attnlab (docs/live_page.md)"
            )
    if problems:
        raise ExperimentError(problems)
    return predictors


def page_with(
    predictors: Mapping[str, Predictor], data: Path | None = None, downloads: Path | None = None
) -> str:
    """The page of models by their names.

    Arguments and errors as for `export`; `downloads` as for `trainings_of`.
    """
    problems = []
    for name, predictor in predictors.items():
        problems += [f"{name}: {problem}" for problem in unsupported(predictor)]
    size = sum(size_of_weights(predictor.model) for predictor in predictors.values())
    if size > MOST_WEIGHTS:
        problems.append(
            f"the weights would take {size / 1e6:.0f} MB of the page, but browsers open no more "
            f"than {MOST_WEIGHTS // 1_000_000} MB; export fewer models, or smaller ones"
        )
    if problems:
        raise ExperimentError(problems)

    pages = {name: page_of(name, predictor) for name, predictor in predictors.items()}
    pairs = pairs_of(pages, open_data(pages, data))
    trainings = trainings_of(predictors, downloads)
    models = []
    for name, predictor in predictors.items():
        maps = small_formed(name, trainings[name], predictor) if name in trainings else None
        examples = [pair["source"] for pair in pairs[name][:1]]
        facts = {
            "name": name,
            "title": model_title(predictor),
            "has_formed": maps is not None,
            **describe(predictor, pages[name], examples),
        }
        model = exported(name, predictor)
        models.append({**model, "facts": facts, "pairs": pairs[name], "formed": maps})
    return html_page(models)


def small_formed(name: str, training: Path, predictor: Predictor) -> dict[str, Any] | None:
    """How the attention of a model formed, with as many validations as a page has room for.

    None, with a printed line, where even a few are too large.
    """
    for most in VALIDATIONS:
        answer = formed(training, predictor.config, most)
        if len(compact(answer).encode()) <= MOST_FORMED:
            return answer
    print(
        f"{name}: the page leaves out how the attention formed, for the maps of "
        f"{min(VALIDATIONS)} validations have more than {MOST_FORMED // 1000} kB"
    )
    return None
