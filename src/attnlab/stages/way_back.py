"""The command `pipelines/way_back.py`: from a run in MLflow to the commands that give its metrics again."""

from __future__ import annotations

import re
import shlex
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import OmegaConf

from attnlab.errors import ExperimentError
from attnlab.experiment.command_settings import WayBackSettings
from attnlab.experiment.hydra_config import CONF
from attnlab.files import parse_yaml
from attnlab.tracking.stored_runs import Origin, StoredRuns

# What a run of its own has in the place of a sweep's or a stage's; its results land where those of any run do.
ALONE = {
    "chain": True,
    "rerun": True,
    "sweep": {"_target_": "attnlab.sweeps.settings.Grid"},
    "launcher": {"_target_": "attnlab.sweeps.settings.Serial", "workers": 1},
    "hydra": {
        "run": {"dir": "${paths.runs}/plain/${now:%Y-%m-%d}/${now:%H-%M-%S-%f}"},
        "job_logging": {"root": {"handlers": ["file"]}},
    },
}


def config_alone(config: dict[str, Any], runs: str) -> dict[str, Any]:
    """A run's config for a run of its own: nothing is written in the places that it names but under `runs`.

    The tracker is the usual one, for the run's may be another machine's, and asks for a password that is not kept.
    """
    paths = {**dict.fromkeys(config["paths"]), "_target_": config["paths"]["_target_"], "runs": runs}
    tracking = OmegaConf.to_container(OmegaConf.load(CONF / "tracking" / "mlflow.yaml"))
    return {**config, **ALONE, "paths": paths, "tracking": tracking}


def commands(origin: Origin) -> list[str]:
    """What to type, with remarks as a shell takes them; what comes from the tracker is no command by itself."""
    tags, revision = origin.tags, origin.tags.get("mlflow.source.git.commit", "")
    lines = [_remark(f"{origin.name}; repeatable {tags.get('repeatable', '')} ({tags.get('host', '')})")]
    if not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", revision):
        lines.append("# the code was in no git checkout: what ran cannot be named")
    else:
        lines.append(f"git checkout {revision}")
        if tags.get("git_dirty") != "false":
            lines.append("# that checkout had changes which were not committed: they are missing here")
    if tags.get("overrides"):
        lines.append(_remark(f"chosen on the command line: {tags['overrides']}"))
    train = ["python", "pipelines/train.py", "-cp", str(origin.config.parent), "-cn", origin.config.stem]
    lines.append(shlex.join(train))
    data_hash = tags.get("data_hash", "")
    lines.append(_remark(f"prepared data: SHA-256 {data_hash}, which MLflow shows as data_hash of the new run"))
    return lines


def _remark(text: str) -> str:
    return f"# {' '.join(text.split())}"


def main(settings: WayBackSettings) -> None:
    assert settings.run is not None
    runs = settings.runs_folder
    reader = StoredRuns(settings.tracking.connection(runs))
    origin = reader.origin(settings.run, runs / "way_back" / settings.run)
    try:
        alone = config_alone(parse_yaml(origin.config.read_text(encoding="utf-8")), settings.paths.runs)
    except (ValueError, LookupError, TypeError) as error:
        raise ExperimentError(
            f"run: the config of {settings.run} is not one of this program's ({origin.config}); choose another run"
        ) from error
    origin.config.write_text(yaml.safe_dump(alone, allow_unicode=True), encoding="utf-8")
    print("\n".join(commands(origin)))
