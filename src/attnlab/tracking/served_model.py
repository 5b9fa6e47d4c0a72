"""A trained model as MLflow loads it: this script, the model folder and attnlab's code, and no pickle.

MLflow runs this file when it saves and when it loads a model; no module of the package imports it.
"""

from pathlib import Path

from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext


class ServedModel(PythonModel):
    """`predict(["Guten Tag"])` gives the translations in order, or the names of the likeliest classes."""

    def load_context(self, context: PythonModelContext) -> None:
        from attnlab.inference.loading import load_folder

        self.model = load_folder(Path(context.artifacts["model"]))

    # MLflow reads the type hints, and takes the form without a context too.
    def predict(self, model_input: list[str]) -> list[str]:  # type: ignore[override]
        return self.model.texts(list(model_input))


set_model(ServedModel())
