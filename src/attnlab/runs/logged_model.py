"""A trained model as MLflow saves it.

It comes with its code, its signature with params, an example and pinned requirements.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlflow.pyfunc
from mlflow.models import Model, ModelSignature
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema, TensorSpec
from mlflow.types.schema import Array, Map, Object, Property

from attnlab.config.identity import PACKAGE_ROOT
from attnlab.runs.run_folder import ServedModel

_SERVED = Path(__file__).with_name("served_model.py")  # what MLflow runs to load a model
# What translating and classifying need. Named outright, for inferring it would load the model in a
# process of its own.
_REQUIREMENTS = (
    "mlflow", "numpy", "pyarrow", "pydantic", "pytorch-lightning", "sacrebleu", "safetensors",
    "tokenizers", "torch", "torchmetrics",
)  # fmt: skip

# One column without a name: MLflow takes lists, arrays, series and tables for it. A name would
# refuse the lists.
_TEXTS = Schema([ColSpec(DataType.string)])


def signature_of(served: ServedModel) -> ModelSignature:
    """Texts to answers, with the params that `predict` takes.

    The default of each setting is None, the model's own value.
    """
    columns: list[ColSpec | TensorSpec] = []
    for name, kind in served.answer.items():
        bare_name, is_required = _name_and_need(name)
        columns.append(ColSpec(_type_of(kind), bare_name, required=is_required))
    params = [ParamSpec("attention", DataType.boolean, False)]
    for name, kind in served.settings.items():
        params.append(ParamSpec(name, DataType[kind], None))
    return ModelSignature(_TEXTS, Schema(columns), ParamSchema(params))


def _name_and_need(name: str) -> tuple[str, bool]:
    """`tokens?` -> the name `tokens`, which an answer may lack."""
    return name.removesuffix("?"), not name.endswith("?")


def _type_of(kind: Any) -> Any:
    """MLflow's type of a kind of `ServedModel.answer`."""
    if isinstance(kind, str):
        return DataType[kind]
    if isinstance(kind, Mapping):
        if "*" in kind:
            return Map(_type_of(kind["*"]))
        properties = []
        for name, inner in kind.items():
            bare_name, is_required = _name_and_need(name)
            properties.append(Property(bare_name, _type_of(inner), required=is_required))
        return Object(properties)
    (each,) = kind
    return Array(_type_of(each))


def save_logged_model(
    place: Path, folder: Path, served: ServedModel | None, example: str, model: Model
) -> None:
    """Write a model folder to a new folder `place`, in the form that MLflow loads.

    served: what it answers; None for a run of an older version, which does not say.
    example: an input text, which MLflow shows.
    """
    shown: dict[str, Any] = {}
    if served is not None:
        shown = {
            "signature": signature_of(served),
            "input_example": ([example], {"attention": True}),
        }
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
            mlflow_model=model,
            **shown,
        )
