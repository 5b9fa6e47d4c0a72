"""Model folders: a trained model on disk, complete, without pickles, and readable without the
training code.

weights.safetensors   the parameters
config.json the sections that the model is built from, and how its training data were cleaned
model.json            vocabulary sizes, the experiment's identity, the step of the weights
source_tokenizer.json target_tokenizer.json, data.json as `prepare` wrote them; a classifier has one
tokenizer.json
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import torch
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.config.identity import target_modules
from attnlab.config.part import Part
from attnlab.errors import ExperimentError
from attnlab.files import atomic_folder, read_own_record, write_json
from attnlab.model.classifier import Classifier
from attnlab.model.seq2seq import Seq2Seq

FROM_PREPARED_DATA = ("source_tokenizer.json", "target_tokenizer.json", "data.json")
FROM_LABELLED_DATA = ("tokenizer.json", "data.json")

Size = Annotated[int, Field(ge=1, lt=2**31)]
# It names a folder.
Identity = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,100}$")]
M = TypeVar("M", Seq2Seq, Classifier)


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a saved model beside its config.

    target_vocabulary_size: None for a classifier.
    num_classes: None for a model that translates.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    source_vocabulary_size: Size
    identity: Identity
    step: Annotated[int, Field(ge=0)]
    target_vocabulary_size: Size | None = None
    num_classes: Size | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes among the run-time arguments of the model's constructor."""
        others = ("identity", "step")
        return {
            name: size
            for name, size in asdict(self).items()
            if name not in others and size is not None
        }


def save_model(
    folder: Path,
    weights: Mapping[str, torch.Tensor],
    config: Mapping[str, Any],
    facts: ModelFacts,
    prepared_data: Path,
) -> None:
    """Write a model folder, whole or not at all.

    Args:
        weights: the model's state_dict.
        config: the resolved config, all of which is saved; loading needs `model` and `padding`.
        prepared_data: the folder whose tokenizers the model was trained with.
    """
    with atomic_folder(folder) as temporary:
        # A copy of each: safetensors refuses tied weights, which share their memory.
        tensors = {
            name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()
        }
        save_file(tensors, temporary / "weights.safetensors")
        (temporary / "weights.safetensors").chmod(0o644)  # as readable as the others
        write_json(temporary / "config.json", config)
        write_json(temporary / "model.json", asdict(facts))
        for name in FROM_PREPARED_DATA if facts.num_classes is None else FROM_LABELLED_DATA:
            shutil.copyfile(prepared_data / name, temporary / name)


def read_facts(folder: Path) -> ModelFacts:
    """The facts of a model folder; raises ExperimentError where it is invalid."""
    try:
        return TypeAdapter(ModelFacts).validate_json(
            (folder / "model.json").read_text(encoding="utf-8"), strict=True
        )
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
    except (OSError, ValueError) as error:
        reason = str(error.strerror if isinstance(error, OSError) else error)
    inside = (
        f"; did you mean {folder / 'model'}?" if (folder / "model" / "model.json").is_file() else ""
    )
    raise ExperimentError(
        f"{folder} must be a model folder, but its model.json cannot be read ({reason}){inside}"
    )


def read_config(folder: Path) -> dict[str, Any]:
    """The config sections of a model folder; raises ExperimentError where it has none."""
    return read_own_record(folder / "config.json", dict[str, Any], "take a whole model folder")


def load_model(folder: Path | str, device: str = "cpu", allow: Collection[str] = ()) -> Seq2Seq:
    """The translating model of a folder, in evaluation mode.

    Args:
        allow: modules outside of attnlab whose classes the folder's config may name, with the
            modules inside them. A folder that names another one is refused before anything of it is
            imported.

    Raises ExperimentError where the folder is broken.
    """
    return _load(Seq2Seq, Path(folder), device, allow)


def load_classifier(
    folder: Path | str, device: str = "cpu", allow: Collection[str] = ()
) -> Classifier:
    """The classifier of a folder, in evaluation mode; as `load_model`."""
    return _load(Classifier, Path(folder), device, allow)


def load_weights(model: torch.nn.Module, folder: Path) -> None:
    """Give a model the weights of a folder.

    Raises ExperimentError, with every name, where the folder has others, or of other shapes.
    """
    try:
        model.load_state_dict(_weights(folder, "cpu"))
    except RuntimeError as error:
        raise ExperimentError(
            f"the weights in {folder} do not fit the model: {' '.join(str(error).split())}; choose "
            f"the parts and sizes of model as in {folder / 'config.json'}"
        ) from error


def _weights(folder: Path, device: str) -> dict[str, torch.Tensor]:
    try:
        return load_file(folder / "weights.safetensors", device=device)
    except (OSError, SafetensorError) as error:
        raise ExperimentError(f"{folder} must be a whole model folder, but {error}") from error


def bind_section(
    config: Mapping[str, Any], section: str, kind: type, allow: Collection[str] = ()
) -> Any:
    """Bind a section of a model folder's config; raises ExperimentError where it names a class that
    is not allowed.
    """
    node = config.get(section)
    foreign = sorted(
        module
        for module in set(target_modules(node))
        if not any(f"{module}.".startswith(f"{each}.") for each in ("attnlab", *allow))
    )
    if foreign:
        raise ExperimentError(
            f"{section} of this model folder names classes of {', '.join(foreign)}; loading it "
            f"would run that code. Where you trust it, allow it: allow={tuple(foreign)!r} in "
            f"Python, {' '.join(f'--allow {module}' for module in foreign)} at the shell"
        )
    try:
        return bind(node, kind, section)
    except ExperimentError as error:
        if section == "search":  # which a caller may change
            raise
        older = (
            "the model folder was written by another version of attnlab, or changed since: train "
            "the model again"
        )
        raise ExperimentError([*error.problems, older]) from error


def _load(kind: type[M], folder: Path, device: str, allow: Collection[str]) -> M:
    facts, config, weights = read_facts(folder), read_config(folder), _weights(folder, device)
    if (facts.num_classes is None) != (kind is Seq2Seq):
        task = "translation" if facts.num_classes is None else "classification"
        raise ExperimentError(
            f"the model in {folder} goes with task={task}; choose that task, or another model "
            "folder"
        )
    part: Part[M] = bind_section(config, "model", kind, allow)
    runtime = {**facts.sizes, "padding": bind_section(config, "padding", Padding, allow)}
    try:
        # Sizes that do not fit are found before they take memory
        with torch.device("meta"), ShapesAlone():
            part(**runtime).load_state_dict(weights, assign=True)
    except (RuntimeError, OverflowError) as error:
        raise ExperimentError(
            f"{folder}: the weights do not fit the config: {' '.join(str(error).split())}"
        ) from error
    model = part(**runtime)
    model.load_state_dict(weights)
    return model.to(device).eval()


class ShapesAlone(TorchFunctionMode):
    """Within it, first values are neither drawn nor scaled: tensors on `meta` have none.

    torch would import its compiler for that, which takes seconds.
    """

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        named = named or {}
        if function.__name__ in (
            "__truediv__",
            "constant_",
            "div",
            "kaiming_uniform_",
            "normal_",
            "uniform_",
        ):
            return named["tensor"] if "tensor" in named else arguments[0]
        return function(*arguments, **named)
