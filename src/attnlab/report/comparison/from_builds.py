"""The runs that a chain of stages built, read from their folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.files import parse_yaml
from attnlab.report.comparison.choices import SEED, short_names, system_names, varying
from attnlab.report.comparison.compared_run import ComparedRun, ComparedRuns, each_once, title_of
from attnlab.report.comparison.evaluation_files import read_evaluation
from attnlab.report.read import read_history
from attnlab.tracking.flatten import dotted_params, short_params


def runs_of_builds(folders: Sequence[Path]) -> ComparedRuns:
    """Each folder holds `resolved.yaml`, `training/` and `evaluation/`; raises ExperimentError where one lacks them.

    What it cost to build them is kept nowhere, for the stages' outputs repeat to the byte.
    """
    params = [_params(folder) for folder in folders]
    keys = varying(params)
    short = short_names(keys)
    systems = system_names([{key: each.get(key, "") for key in keys} for each in params])
    built = [
        ComparedRun(
            name=folder.name,
            system=system,
            choices={short[key]: each.get(key, "") for key in keys},
            seed=each.get(SEED, ""),
            evaluation=read_evaluation(folder / "evaluation"),
            history=read_history(folder / "training" / "history.csv"),
            cpu_seconds=None,
            peak_megabytes=None,
            run_id=None,
        )
        for folder, each, system in zip(folders, params, systems, strict=True)
    ]
    runs, repeated = each_once(built)
    varied = list(short.values())
    return ComparedRuns(
        title=title_of(" × ".join(varied) or "seeds", runs),
        told=[
            ("builds", ", ".join(folder.name for folder in folders)),
            ("varied", ", ".join(varied) or "nothing but the seed"),
        ],
        runs=runs,
        left_out=repeated,
    )


def _params(folder: Path) -> Mapping[str, str]:
    path = folder / "resolved.yaml"
    try:
        config = parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExperimentError(f"builds: {path} is missing; run the compose stage first") from None
    except UnicodeDecodeError:
        raise ExperimentError(f"builds: {path} is not UTF-8; run the compose stage again") from None
    except ValueError as error:
        raise ExperimentError(f"builds: {path} {error}") from None
    if not isinstance(config, Mapping):
        raise ExperimentError(f"builds: {path} is no config")
    config = {key: value for key, value in config.items() if key != "hydra"}
    return {**short_params(config), **dotted_params(config)}
