"""What `import attnlab` offers: load a trained model, compose an experiment."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.tasks.predictor import Predictor
from attnlab.tasks.saved import load_predictor

if TYPE_CHECKING:
    from attnlab.experiment.notebook import NotebookExperiment


def load(
    model: str | Path,
    device: str = "cpu",
    allow: Collection[str] = (),
    tracking_uri: str | None = None,
) -> Predictor:
    """A trained model: `load("build/model")("Guten Tag").text`.

    Args:
        model: a model folder, or MLflow's `runs:/<id>/model`, `models:/<name>@<alias>`,
            `models:/<name>/<version>`, `models:/<name>/latest`.
        allow: modules outside of attnlab whose classes the model may name, or the name of one.
        tracking_uri: MLflow's; None is the one that MLflow is set to, or else the database in the
            folder `runs`.

    Raises ExperimentError where there is no such model, or it is broken.
    """
    if not is_in_mlflow(model):
        return load_predictor(Path(model), device, allow)
    from attnlab.runs.stored_models import download_model  # costs an import of mlflow

    with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
        return load_predictor(download_model(str(model), Path(folder), tracking_uri), device, allow)


def is_in_mlflow(model: str | Path) -> bool:
    """Whether this names a model in MLflow, not a folder."""
    return str(model).startswith(("runs:/", "models:/"))


def compose(overrides: Sequence[str] = ()) -> NotebookExperiment:
    """The experiment that Hydra's overrides compose.

    An example is `compose(["data=dates", "model/attention=dot"])`. `experiment.prepare()` gives its
    data; with these, `experiment.module(data)` and `experiment.datamodule(data)` are what a
    `pl.Trainer` takes.

    Raises ExperimentError with every problem of the config.
    """
    from attnlab.experiment.notebook import (
        NotebookExperiment,  # costs imports of Hydra and Lightning
    )

    return NotebookExperiment.compose(overrides)
