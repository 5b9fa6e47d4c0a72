"""params.yaml of DVC -> build/resolved.yaml, the one config that all later stages read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from attnlab.config.params import leaves
from attnlab.errors import ExperimentError
from attnlab.experiment import composition
from attnlab.experiment.command_callback import CommandCallback
from attnlab.experiment.override_text import as_override, quoted
from attnlab.experiment.sections import EVALUATE_SECTIONS, PREPARE_SECTIONS, TRAIN_SECTIONS
from attnlab.files import atomic_file, atomic_folder

INTO = "build"
# Groups of the config that params.yaml has by the name of a choice. `-S data.num_pairs=300` would
# replace that name.
NAMED_CHOICES = ("data", "experiment", "hardware", "padding", "search")


def outputs(into: str = INTO) -> dict[str, str]:
    """Where the stages write, by the name of the stage's path."""
    # All experiments on the same data share those, wherever they themselves are written.
    folders = {"data": f"{INTO}/data"}
    for name in ("model", "training", "evaluation", "report"):
        folders[name] = f"{into}/{name}"
    return folders


def compose(
    params: dict[str, Any], more: list[str] | None = None, into: str = INTO
) -> dict[str, Any]:
    """The resolved config of params.yaml's content and more overrides.

    Raises ExperimentError with every problem.
    """
    overrides = params.get("overrides") or []
    are_texts = isinstance(overrides, list) and all(isinstance(each, str) for each in overrides)
    if not are_texts:
        raise ExperimentError(
            f"overrides must be a list of texts such as 'search.size=10', got {overrides!r}"
        )
    for group in NAMED_CHOICES:
        if isinstance(params.get(group), Mapping):
            raise ExperimentError(
                f"{group} must be the name of a choice in params.yaml, got settings; restore the "
                "file with `git checkout params.yaml`, and set them with -S "
                f"'overrides=[\"{group}.<setting>=<value>\"]'"
            )
    chosen = _chosen(params)
    places = [f"paths.{stage}={quoted(folder)}" for stage, folder in outputs(into).items()]
    # The later override of a setting holds: the stages write where DVC looks for their outputs.
    experiment = composition.compose([*chosen, *overrides, *(more or []), *places, "chain=false"])
    callback = f"{CommandCallback.__module__}.{CommandCallback.__qualname__}"
    hydra = {
        # The stages compose no groups: what was chosen here is what their report shows.
        "runtime": {"choices": experiment.choices},
        # Hydra writes its log of each stage here, out of DVC's sight.
        "run": {"dir": "${paths.runs}/dvc/${now:%Y-%m-%d}/${now:%H-%M-%S-%f}"},
        "job_logging": {"root": {"handlers": ["file"]}},
        "callbacks": {"command": {"_target_": callback}},
    }
    return {**experiment.config, "hydra": hydra}


def _chosen(params: dict[str, Any]) -> list[str]:
    """What params.yaml says beside `overrides`, as overrides; null leaves the default."""
    settings = {key: value for key, value in params.items() if key != "overrides"}
    chosen = []
    for key, value in leaves(settings):
        if value not in (None, {}):
            chosen.append(f"{key}={as_override(value, quoted)}")
    return chosen


def read_arguments(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """(the folder of the result, the overrides) of a command line."""
    into = INTO
    overrides = []
    for text in arguments:
        if text.startswith("into="):
            into = text.removeprefix("into=")
        else:
            overrides.append(text)
    return into, overrides


def read_params() -> dict[str, Any]:
    """The content of params.yaml in the current folder."""
    # OmegaConf reads 1e-3 as a number, and refuses a key that comes twice.
    return OmegaConf.to_container(OmegaConf.load("params.yaml"))  # type: ignore[return-value]


def write_resolved(resolved: dict[str, Any], into: str) -> None:
    """Write the config, and each section that a stage depends on to `sections/<name>.yaml`."""
    with atomic_file(Path(into, "resolved.yaml")) as path:
        path.write_text(_as_yaml(resolved), encoding="utf-8")
    with atomic_folder(Path(into, "sections")) as folder:
        for name in {*PREPARE_SECTIONS, *TRAIN_SECTIONS, *EVALUATE_SECTIONS}:
            text = _as_yaml({name: resolved[name]})
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def _as_yaml(config: dict[str, Any]) -> str:
    return OmegaConf.to_yaml(OmegaConf.create(config), sort_keys=True)
