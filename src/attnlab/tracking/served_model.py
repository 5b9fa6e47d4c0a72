"""A trained model as MLflow loads it: this script, the model folder and attnlab's code, and no pickle.

MLflow runs this file when it saves and when it loads a model; no module of the package imports it.
"""

from pathlib import Path

from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext


class ServedModel(PythonModel):
    """`predict(["Guten Tag"])` gives the translations in order, or the names of the likeliest classes."""

    def load_context(self, context: PythonModelContext) -> None:
        from attnlab.evaluation.predictors import SentenceClassifier, Translator
        from attnlab.model.model_folder import read_facts

        folder = Path(context.artifacts["model"])
        if read_facts(folder).num_classes is None:
            self.answer = Translator.load(folder).translate
        else:
            self.answer = SentenceClassifier.load(folder).classify

    # MLflow reads the type hints, and takes the form without a context too.
    def predict(self, model_input: list[str]) -> list[str]:  # type: ignore[override]
        return self.answer(list(model_input))


set_model(ServedModel())
