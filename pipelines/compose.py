"""Compose: the choices of params.yaml -> build/resolved.yaml, the one config that all later stages read.

    python pipelines/compose.py

`dvc repro` composes nothing by itself, so this stage does; each later stage depends on its own sections of the result.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from experiment import check
from launch import CONF, compose_config, launch

BUILD = {
    "data": "build/data",
    "model": "build/model",
    "training": "build/training",
    "evaluation": "build/evaluation",
    "report": "build/report",
}


def compose(params: dict[str, Any]) -> dict[str, Any]:
    """params.yaml's content -> the resolved config; raises ExperimentError with every problem."""
    from attnlab.composition.error import ExperimentError

    overrides = params.get("overrides") or []
    if not isinstance(overrides, list) or not all(isinstance(override, str) for override in overrides):
        raise ExperimentError(f"overrides (in params.yaml) must be a list of texts, got {overrides!r}")
    chosen = [
        f"{key}={_as_override(value)}" for key, value in params.items() if key != "overrides" and value is not None
    ]
    places = [f"paths.{stage}={folder}" for stage, folder in BUILD.items()]
    experiment = check(compose_config(CONF, "config", [*chosen, *overrides, *places, "chain=false"]))
    # Hydra writes its log of each stage here, out of DVC's sight.
    run = {
        "run": {"dir": "${paths.runs}/dvc/${now:%Y-%m-%d}/${now:%H-%M-%S-%f}"},
        "job_logging": {"root": {"handlers": ["file"]}},
    }
    return {**experiment.config, "hydra": run}


def _as_override(value: Any) -> str:
    """A value in Hydra's override grammar."""
    if isinstance(value, str):
        return (
            "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
            if not value.replace("_", "").isalnum()
            else value
        )
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(_as_override(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_as_override(item)}" for key, item in value.items()) + "}"
    return str(value)


def main() -> None:
    from attnlab.composition.atomic import atomic_file
    from attnlab.composition.error import ExperimentError

    if sys.argv[1:]:
        raise ExperimentError(
            f"compose takes its choices from params.yaml and no arguments, got {' '.join(sys.argv[1:])}"
        )
    params = OmegaConf.to_container(OmegaConf.load("params.yaml"))
    if not isinstance(params, dict):
        raise ExperimentError("params.yaml must be a mapping of config keys to values")
    resolved = compose({str(key): value for key, value in params.items()})
    with atomic_file(Path("build/resolved.yaml")) as path:
        path.write_text(OmegaConf.to_yaml(OmegaConf.create(resolved), sort_keys=True), encoding="utf-8")


if __name__ == "__main__":
    launch(main)
