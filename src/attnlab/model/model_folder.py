"""Model folders: a trained model on disk, complete, without pickles.

They are read without the training code.

weights.safetensors   the parameters
config.json           the sections that the model is built from, and how its data were cleaned
model.json            vocabulary sizes, the experiment's identity, the step of the weights
example.txt           a short text of its data, which older folders lack
and the files of the prepared data that the model was trained with, such as source_tokenizer.json
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, overload

import torch
from pydantic import Field, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.config.identity import foreign_classes, foreign_modules
from attnlab.config.part import Part
from attnlab.config.renamed import with_todays_parts
from attnlab.config.target import NOT_IMPORTED, TARGET, class_named
from attnlab.errors import ExperimentError
from attnlab.files import atomic_folder, read_own_record, write_json
from attnlab.model.classifier import Classifier
from attnlab.model.seq2seq import Seq2Seq

# Classes that have moved since the configs of older model folders named them. It is read here
# alone: a config that a user writes names a class as it is called today.
FORMER_CLASSES = {
    "attnlab.model.decoder.decoders.AttendThenStep": (
        "attnlab.model.decoders.attend_then_step.AttendThenStep"
    ),
    "attnlab.model.decoder.decoders.Conditional": "attnlab.model.decoders.conditional.Conditional",
    "attnlab.model.decoder.decoders.NoAttention": "attnlab.model.decoders.no_attention.NoAttention",
    "attnlab.model.decoder.decoders.StepThenAttend": (
        "attnlab.model.decoders.step_then_attend.StepThenAttend"
    ),
    "attnlab.model.encoder.Encoder": "attnlab.model.encoders.recurrent.RecurrentEncoder",
    "attnlab.model.normalisers.Softmax": "attnlab.model.normalisers.softmax.Softmax",
    "attnlab.model.normalisers.Sparsemax": "attnlab.model.normalisers.sparsemax.Sparsemax",
    "attnlab.training.settings.TranslationTraining": (
        "attnlab.tasks.translation.settings.TranslationTraining"
    ),
    "attnlab.training.settings.ClassificationTraining": (
        "attnlab.tasks.classification.settings.ClassificationTraining"
    ),
}

# The weights of coverage in older model folders; it is a history today.
FORMER_COVERAGE = re.compile(r"(attention|attentions\.\d+)\.coverage\.w(?=\.weight$)")

EXAMPLE = "example.txt"

# Sections of whose classes a loaded model makes objects, beside the cleaning of its data.
_READ = ("task", "model", "padding", "search", "cleaning")

Size = Annotated[int, Field(ge=1, lt=2**31)]
# It names a folder.
Identity = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,100}$")]
M = TypeVar("M", bound=torch.nn.Module)


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a saved model beside its config.

    identity: of the experiment that trained it.
    step: of its weights.
    sizes: those among the run-time arguments of its constructor, such as its vocabularies.
    """

    identity: Identity
    step: Annotated[int, Field(ge=0)]
    sizes: dict[str, Size]

    def as_json(self) -> dict[str, Any]:
        """The content of model.json: the sizes stand beside the other facts."""
        return {"identity": self.identity, "step": self.step, **self.sizes}

    @classmethod
    def of_json(cls, content: Any) -> ModelFacts:
        """The facts in a model.json; raises pydantic's ValidationError where it is invalid."""
        if isinstance(content, dict):
            # Older folders have null for the sizes of other models.
            others = {name: size for name, size in content.items() if size is not None}
            facts = {name: others.pop(name) for name in ("identity", "step") if name in others}
            content = {**facts, "sizes": others}
        return TypeAdapter(cls).validate_json(json.dumps(content), strict=True)


def save_model(
    folder: Path,
    weights: Mapping[str, torch.Tensor],
    config: Mapping[str, Any],
    facts: ModelFacts,
    files: Iterable[Path],
    example: str = "",
) -> None:
    """Write a model folder, whole or not at all.

    Args:
        weights: the model's state_dict.
        config: the resolved config, all of which is saved; loading needs `model` and `padding`.
        files: of the prepared data, what the model needs of them, such as its tokenizers.
        example: a short text of its data; "" for none.
    """
    with atomic_folder(folder) as temporary:
        # A copy of each: safetensors refuses tied weights, which share their memory.
        tensors = {
            name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()
        }
        save_file(tensors, temporary / "weights.safetensors")
        (temporary / "weights.safetensors").chmod(0o644)  # as readable as the others
        write_json(temporary / "config.json", config)
        write_json(temporary / "model.json", facts.as_json())
        for file in files:
            shutil.copyfile(file, temporary / file.name)
        if example:
            (temporary / EXAMPLE).write_text(example, encoding="utf-8")


def read_example(folder: Path) -> str:
    """A short text of the data that a model was trained with; "" where the folder has none."""
    path = folder / EXAMPLE
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def read_facts(folder: Path) -> ModelFacts:
    """The facts of a model folder; raises ExperimentError where it is invalid."""
    try:
        content = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        return ModelFacts.of_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        # The sizes stand beside the other facts.
        place = [str(name) for name in first["loc"] if name != "sizes"]
        reason = f"{'.'.join(place) or 'it'}: {first['msg']}"
    except (OSError, ValueError) as error:
        reason = str(error.strerror if isinstance(error, OSError) else error)
    inside = (
        f"; did you mean {folder / 'model'}?" if (folder / "model" / "model.json").is_file() else ""
    )
    raise ExperimentError(
        f"{folder} must be a model folder, but its model.json cannot be read ({reason}){inside}"
    )


def read_config(folder: Path) -> dict[str, Any]:
    """The config sections of a model folder, with the names that its classes have today.

    Raises ExperimentError where it has none.
    """
    config = read_own_record(folder / "config.json", dict[str, Any], "take a whole model folder")
    renamed = with_todays_parts(config)
    return {section: _with_todays_classes(node) for section, node in renamed.items()}


def _with_todays_classes(node: Any) -> Any:
    """A config node in which former names of classes are those of today."""
    if isinstance(node, list):
        return [_with_todays_classes(each) for each in node]
    if not isinstance(node, dict):
        return node
    renamed = {key: _with_todays_classes(value) for key, value in node.items()}
    target = renamed.get(TARGET)
    if isinstance(target, str):
        renamed[TARGET] = FORMER_CLASSES.get(target, target)
    return renamed


@overload
def load_model(folder: Path | str, device: str = "cpu", allow: Collection[str] = ()) -> Seq2Seq: ...
@overload
def load_model(
    folder: Path | str, device: str = "cpu", allow: Collection[str] = (), *, kind: type[M]
) -> M: ...
def load_model(
    folder: Path | str,
    device: str = "cpu",
    allow: Collection[str] = (),
    *,
    kind: type[torch.nn.Module] = Seq2Seq,
) -> torch.nn.Module:
    """The model of a folder, in evaluation mode; by default one that translates.

    Args:
        allow: modules outside of attnlab whose classes the folder's config may name, with the
            modules inside them. A folder that names another one is refused before anything of it is
            imported.
        kind: of the model.

    Raises ExperimentError where the folder is broken, or its model is of another kind.
    """
    return _load(kind, Path(folder), device, allow)


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
        weights = load_file(folder / "weights.safetensors", device=device)
    except (OSError, SafetensorError) as error:
        raise ExperimentError(f"{folder} must be a whole model folder, but {error}") from error
    return {FORMER_COVERAGE.sub(r"\1.history.w", name): value for name, value in weights.items()}


class ForeignCodeError(ExperimentError):
    """A section of a model folder names classes of modules that are not allowed."""

    def __init__(
        self, problems: str | Sequence[str], section: str = "", classes: Sequence[str] = ()
    ) -> None:
        super().__init__(problems)
        self.section, self.classes = section, classes


def refuse_foreign(config: Mapping[str, Any], section: str, allow: Collection[str]) -> None:
    """Raise ForeignCodeError where a section names classes of modules that are not allowed.

    It names the modules to allow, those of the other sections that a loaded model reads among them.
    """
    foreign = foreign_modules(config.get(section), allow)
    if not foreign:
        return
    # All at once: else the next section that is read asks for the next one.
    needed = {*foreign, *foreign_modules([config.get(name) for name in _READ], allow)}
    data = config.get("data")
    if isinstance(data, Mapping):
        needed.update(foreign_modules(data.get("cleaning"), allow))
    modules = sorted(needed)
    raise ForeignCodeError(
        f"{section} of this model folder names classes of {', '.join(foreign)}; loading it "
        f"would run that code. Where you trust it, allow it: allow={tuple(modules)!r} in "
        f"Python, {' '.join(f'--allow {module}' for module in modules)} at the shell",
        section,
        foreign_classes(config.get(section), allow),
    )


def bind_section(
    config: Mapping[str, Any], section: str, kind: type, allow: Collection[str] = ()
) -> Any:
    """Bind a section of a model folder's config.

    Raises ExperimentError where it names a class that is not allowed.
    """
    refuse_foreign(config, section, allow)
    try:
        return bind(config.get(section), kind, section)
    except ExperimentError as error:
        if section == "search":  # which a caller may change
            raise
        if any(NOT_IMPORTED in problem for problem in error.problems):
            raise
        older = (
            "the model folder was written by another version of attnlab, or changed since: train "
            "the model again"
        )
        raise ExperimentError([*error.problems, older]) from error


def _load(kind: type[M], folder: Path, device: str, allow: Collection[str]) -> M:
    facts, config, weights = read_facts(folder), read_config(folder), _weights(folder, device)
    refuse_foreign(config, "model", allow)
    _check_kind(folder, config.get("model"), kind)
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


def _check_kind(folder: Path, node: Any, kind: type) -> None:
    """Raise ExperimentError where a folder's model is of another kind, that of another task."""
    target = node.get(TARGET) if isinstance(node, Mapping) else None
    try:
        found = class_named(target, torch.nn.Module)
    except ValueError:
        return  # binding it says what is wrong
    if not issubclass(found, kind):
        raise ExperimentError(
            f"the model in {folder} is a {found.__name__}, but a {kind.__name__} is needed here; "
            "choose the task that it goes with, or another model folder"
        )


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
