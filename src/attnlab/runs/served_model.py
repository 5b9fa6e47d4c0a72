"""A trained model as MLflow loads it: this script, the model folder and attnlab's code.

No pickle is involved. MLflow runs this file when it saves and when it loads a model; no module of
the package imports it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext

from attnlab import ExperimentError, load

COLUMN = "text"


class ServedModel(PythonModel):
    """A model that returns an object for each text.

    `predict(["Guten Tag"], params={"beam": 5})` returns `[{"text": ..., "score": ...}]`.
    """

    def load_context(self, context: PythonModelContext) -> None:
        self.model = load(Path(context.artifacts["model"]))

    # The signature makes a table of every input; with the type hint list[str], MLflow ignores it.
    def predict(
        self,
        context: PythonModelContext,
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """The answers to the texts of the first column.

        A param of None leaves the model's own setting.

        Raises MlflowException, which MLflow's server answers with the status 400, for unsuitable
        texts and params.
        """
        given = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            return self.model.plain_answers(texts_of(model_input), **given)
        except ExperimentError as error:
            raise MlflowException.invalid_parameter_value("; ".join(error.problems)) from None


def texts_of(table: pd.DataFrame) -> list[str]:
    """The texts of a table's first column.

    Raises ExperimentError where the column has another name than that of the texts.
    """
    column = table.columns[0]
    if isinstance(column, str) and column != COLUMN:
        raise ExperimentError(
            f"the first column must be {COLUMN!r}, got {column!r}; "
            "rename it or send a list of texts"
        )
    # MLflow makes an array without axes of each text in {"inputs": [{"text": ...}]}.
    texts = [
        text.item() if isinstance(text, np.ndarray) and text.ndim == 0 else text
        for text in table[column]
    ]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ExperimentError(f"each text must be a string, got {text!r} in row {row}")
    return texts


set_model(ServedModel())
