"""Compose: the choices of params.yaml -> build/resolved.yaml, the one config that all later stages read.

    python pipelines/compose.py [overrides, which go before the choices of params.yaml]
    python pipelines/compose.py into=attentions/build/dot-1 model/attention=dot seed=1

`into` is the folder of the result, and of the outputs of the stages that read it. The data lie beside it, in
attentions/build/data, and are shared by all that are composed there.
`dvc repro` composes nothing by itself, so this stage does; each later stage depends on its own sections of the result.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from attnlab.errors import ExperimentError
from attnlab.experiment import composition
from attnlab.experiment.experiment import EVALUATE_SECTIONS, PREPARE_SECTIONS, TRAIN_SECTIONS
from attnlab.files import parse_yaml

INTO = "build"
# In params.yaml these hold the name of a choice, so that `-S data=copy` sets it as on train.py's command line. To set
# data.num_pairs DVC would put a mapping in its place, so that setting stands under SETTINGS.
NAMED_CHOICES = ("data", "experiment", "hardware", "padding", "search", "task")
SETTINGS = "settings"


def outputs(into: str = INTO) -> dict[str, str]:
    """Where the stages write, by the name of the stage's path."""
    own = {stage: f"{into}/{stage}" for stage in ("model", "training", "evaluation", "report")}
    # One composed alone keeps its data with the rest.
    return {"data": f"{INTO if into == INTO else Path(into).parent}/data", **own}


SECTIONS_OF_STAGES = {*PREPARE_SECTIONS, *TRAIN_SECTIONS, *EVALUATE_SECTIONS}


def compose(params: dict[str, Any], more: list[str] | None = None, into: str = INTO) -> dict[str, Any]:
    """params.yaml's content, and more overrides -> the resolved config; raises ExperimentError with every problem."""
    overrides = params.get("overrides") or []
    if not isinstance(overrides, list) or not all(isinstance(override, str) for override in overrides):
        raise ExperimentError(f"overrides must be a list of texts such as 'search.size=10', got {overrides!r}")
    settings = params.get(SETTINGS) or {}
    choices = {key: value for key, value in params.items() if key not in ("overrides", SETTINGS)}
    if not isinstance(settings, Mapping):
        raise ExperimentError(f"{SETTINGS} must be a mapping such as {{data: {{num_pairs: 300}}}}, got {settings!r}")
    chosen = [f"{key}={_as_override(value)}" for key, value in {**_flat(choices), **_flat(settings)}.items()]
    places = [f"paths.{stage}={_as_override(folder)}" for stage, folder in outputs(into).items()]
    experiment = composition.compose([*chosen, *overrides, *(more or []), *places, "chain=false"])
    if experiment.paths.ensemble:
        raise ExperimentError(
            "paths.ensemble names models that no stage makes; leave it out here, and give it to pipelines/evaluate.py"
        )
    hydra = {
        # The stages compose no groups: what was chosen here is what their report shows.
        "runtime": {"choices": experiment.choices},
        # Hydra writes its log of each stage here, out of DVC's sight.
        "run": {"dir": "${paths.runs}/dvc/${now:%Y-%m-%d}/${now:%H-%M-%S-%f}"},
        "job_logging": {"root": {"handlers": ["file"]}},
    }
    return {**experiment.config, "hydra": hydra}


def digests(resolved: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of each section, which the stages depend on beside the section itself.

    DVC's run cache leaves out every key called `size` when it looks whether a stage ran with the same params before
    (`dvc.stage.cache`), so that another beam size alone would get the results of the last one.
    """
    from attnlab.config.identity import config_digest

    return {name: config_digest({name: resolved[name]}) for name in SECTIONS_OF_STAGES}


def read_params(path: Path) -> dict[str, Any]:
    """The choices; raises ExperimentError where the file is no mapping of keys to values."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        folder = path.resolve().parent
        raise ExperimentError(f"there is no {path.name} in {folder}; start in the project's folder") from None
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path.name} is not UTF-8 (byte {error.start + 1}); save it as UTF-8") from error
    except OSError as error:
        raise ExperimentError(f"{path.name} cannot be read: {error.strerror}") from error
    try:
        # OmegaConf makes a mapping even of a lone word, and has no words for a lone number.
        is_mapping = isinstance(parse_yaml(text), dict)
        params = OmegaConf.to_container(parse_yaml(text, OmegaConf.create)) if is_mapping else None
    except OmegaConfBaseException as error:
        reason = " ".join(str(error).split())
        raise ExperimentError(f"{path.name} cannot be read: {reason}; correct it there") from error
    except ValueError as error:
        raise ExperimentError(f"{path.name} {error}") from None
    if not isinstance(params, dict):
        raise ExperimentError(f"{path.name} must be a mapping of config keys to values, such as seed: 1")
    named = {str(key): value for key, value in params.items()}
    _check_layout(path, named)
    return named


def _check_layout(path: Path, params: dict[str, Any]) -> None:
    """Raise ExperimentError where DVC's -S, or somebody's hand, has put a key that -S cannot set later."""
    restore = f"or restore the file with `git checkout {path.name}`"
    dotted = [key for key in params if "." in key]
    if dotted:
        remedy = " and ".join(f"`{_nested(key)}`" for key in dotted[:2])
        raise ExperimentError(
            f"{path.name} has keys with dots, which DVC takes for nested ones: {', '.join(dotted)}; nest them, as "
            f"{remedy}, {restore}"
        )
    sections = [key for key in NAMED_CHOICES if isinstance(params.get(key), dict)]
    if sections:
        raise ExperimentError(
            f"{path.name} has settings where the name of a choice belongs: {', '.join(sections)}; put them under "
            f"`{SETTINGS}`, as -S ++{SETTINGS}.{sections[0]}.<setting>=<value> does, {restore}"
        )


def _nested(key: str) -> str:
    """`training: {max_steps: ...}` for training.max_steps."""
    parts = key.split(".")
    if parts[0] in NAMED_CHOICES:
        parts.insert(0, SETTINGS)
    return f"{parts[0]}: " + "".join(f"{{{part}: " for part in parts[1:]) + "..." + "}" * (len(parts) - 1)


def _flat(params: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"training": {"max_steps": 3, "patience": None}}` is `{"training.max_steps": 3}`."""
    flat: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = value
    return flat


def _as_override(value: Any) -> str:
    """A value in Hydra's override grammar."""
    if value is None:
        return "null"
    if isinstance(value, str):
        # A backslash is only special before a quote and at the end.
        return "'" + re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), value) + "'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(_as_override(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_as_key(str(key))}:{_as_override(item)}" for key, item in value.items()) + "}"
    return str(value)


def _as_key(key: str) -> str:
    return re.sub(r"([\\()\[\]{}:=, \t])", r"\\\1", key)


def _problems(params: dict[str, Any], into: str) -> list[str]:
    """Those that params.yaml has by itself, without a command's overrides."""
    try:
        compose(params, into=into)
    except ExperimentError as error:
        return error.problems
    return []


def main() -> None:
    from attnlab.files import atomic_file

    more = sys.argv[1:]
    if {"-h", "--help"} & set(more):
        print(__doc__)
        return
    options = [text for text in more if text.startswith("-")]
    if options:
        raise ExperimentError(f"compose takes overrides such as seed=2 and no options, got {' '.join(options)}")
    places = [text.partition("=")[2] for text in more if text.startswith("into=")]
    into = places[-1] if places else INTO
    is_text = into.isprintable()  # halves of characters are not
    if len(places) > 1 or not into or not is_text or Path(into).is_absolute() or ".." in Path(into).parts:
        raise ExperimentError(f"into must be one folder inside the project, such as attentions/build/dot; got {places}")
    params = read_params(Path("params.yaml"))
    overrides = [text for text in more if not text.startswith("into=")]
    try:
        resolved = compose(params, overrides, into)
    except ExperimentError as error:
        own = _problems(params, into) if overrides else error.problems
        told = [f"{problem} (chosen in params.yaml)" if problem in own else problem for problem in error.problems]
        raise ExperimentError(told) from error
    with atomic_file(Path(into, "resolved.yaml")) as path:
        path.write_text(OmegaConf.to_yaml(OmegaConf.create(resolved), sort_keys=True), encoding="utf-8")
    with atomic_file(Path(into, "digests.yaml")) as path:
        path.write_text(yaml.safe_dump(digests(resolved)), encoding="utf-8")
