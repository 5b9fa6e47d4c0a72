"""A trained model as MLflow saves it.

It comes with its code, its signature with params, an example and pinned requirements.
"""

from __future__ import annotations

import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import mlflow.pyfunc
from mlflow.models import Model, ModelSignature
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
from mlflow.types.schema import Array, Map, Object, Property

from attnlab.config.identity import PACKAGE_ROOT
from attnlab.data.prepared import LabelledData, PreparedData
from attnlab.errors import ExperimentError

_SERVED = Path(__file__).with_name("served_model.py")  # what MLflow runs to load a model
# What translating and classifying need. Named outright, for inferring it would load the model in a
# process of its own.
_REQUIREMENTS = (
    "mlflow", "numpy", "pyarrow", "pydantic", "pytorch-lightning", "sacrebleu", "safetensors",
    "tokenizers", "torch", "torchmetrics",
)  # fmt: skip

# The types of the params that `predict` takes; None, the default of each search setting, is the
# model's own value.
SEARCH_PARAMS = {
    "search": DataType.string,
    "beam": DataType.long,
    "n_best": DataType.long,
    "length_penalty": DataType.double,
    "coverage_penalty": DataType.double,
    "max_length": DataType.long,
    "max_length_ratio": DataType.double,
    "min_length": DataType.long,
    "replace_unknown": DataType.boolean,
    "int8": DataType.boolean,
    "temperature": DataType.double,
    "top_k": DataType.long,
    "top_p": DataType.double,
    "seed": DataType.long,
}
_ATTENTION = ParamSpec("attention", DataType.boolean, False)
# One column without a name: MLflow takes lists, arrays, series and tables for it. A name would
# refuse the lists.
_TEXTS = Schema([ColSpec(DataType.string)])
_TOKENS, _WEIGHTS = Array(DataType.string), Array(DataType.double)
_HYPOTHESIS = {"text": DataType.string, "score": DataType.double}
_ON_REQUEST = {"tokens": _TOKENS, "source_tokens": _TOKENS, "attention": Array(_WEIGHTS)}
_ALTERNATIVE = Object([
    *(Property(name, kind) for name, kind in _HYPOTHESIS.items()),
    *(Property(name, kind, required=False) for name, kind in _ON_REQUEST.items()),
])  # fmt: skip

SIGNATURES = {
    "translator": ModelSignature(
        _TEXTS,
        Schema(
            [
                *(ColSpec(kind, name) for name, kind in _HYPOTHESIS.items()),
                *(ColSpec(kind, name, required=False) for name, kind in _ON_REQUEST.items()),
                ColSpec(Array(_ALTERNATIVE), "alternatives", required=False),
            ]
        ),
        ParamSchema(
            [_ATTENTION, *(ParamSpec(name, kind, None) for name, kind in SEARCH_PARAMS.items())]
        ),
    ),
    "classifier": ModelSignature(
        _TEXTS,
        Schema(
            [
                ColSpec(DataType.string, "label"),
                ColSpec(Map(DataType.double), "probabilities"),
                ColSpec(_TOKENS, "tokens", required=False),
                ColSpec(_WEIGHTS, "attention", required=False),
            ]
        ),
        ParamSchema([_ATTENTION]),
    ),
}


def save_logged_model(place: Path, folder: Path, kind: str, example: str, model: Model) -> None:
    """Write a model folder to a new folder `place`, in the form that MLflow loads.

    kind: `translator` or `classifier`.
    example: an input text, which MLflow shows.
    """
    with tempfile.TemporaryDirectory(prefix="attnlab-code-") as temporary:
        code = Path(temporary) / PACKAGE_ROOT.name
        shutil.copytree(PACKAGE_ROOT, code, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        mlflow.pyfunc.save_model(
            place,
            python_model=str(_SERVED),
            artifacts={"model": str(folder)},
            code_paths=[str(code)],
            pip_requirements=[
                f"{name}=={version(name).partition('+')[0]}" for name in _REQUIREMENTS
            ],
            signature=SIGNATURES[kind],
            input_example=([example], {"attention": True}),
            mlflow_model=model,
        )


def example_text(data: Path, kind: str) -> str:
    """The first validation text of prepared data; a greeting where the data are gone."""
    try:
        if kind == "translator":
            return PreparedData(data).split("validation").source_text(0)
        return LabelledData(data).split("validation").text(0)
    except ExperimentError:
        return "Guten Tag"
