"""The classifier as MLflow loads it: this script, the model folder and attnlab's code, and no pickle.

MLflow runs this file when it saves and when it loads a model; it is no part of the package's own imports.
"""

from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext


class ServedClassifier(PythonModel):
    """`predict(["a moving film"])` gives the names of the likeliest classes, in order."""

    def load_context(self, context: PythonModelContext) -> None:
        from pathlib import Path

        from attnlab.evaluation.predictors import SentenceClassifier

        self.classifier = SentenceClassifier.load(Path(context.artifacts["model"]))

    # MLflow reads the type hints, and takes the form without a context too.
    def predict(self, model_input: list[str]) -> list[str]:  # type: ignore[override]
        return self.classifier.classify(list(model_input))


set_model(ServedClassifier())
