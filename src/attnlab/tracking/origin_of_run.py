"""What a run in MLflow says of where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.tracking.read_runs import RunReader
from attnlab.tracking.run import CONFIG_FILE


@dataclass(frozen=True)
class Origin:
    """revision: of the code's git checkout; None where there was none.
    changed: whether the checkout differed from the revision.
    overrides: what the command line chose, as a shell reads it; empty where the config came from a file.
    data_hash: SHA-256 of the prepared data.
    repeatable, host: how far, and where, another run gives the same bytes.
    config: the file with the whole config.
    """

    name: str
    revision: str | None
    changed: bool
    overrides: str
    data_hash: str
    repeatable: str
    host: str
    config: Path


def origin_of(reader: RunReader, run_id: str, into: Path) -> Origin:
    """Read a run's tags, and copy its config to a folder.

    Raises ExperimentError where there is no such run, or it has no config.
    """
    name, tags = reader.tags(run_id)
    config = reader.file(run_id, CONFIG_FILE, into)
    if config is None:
        raise ExperimentError(f"run: {run_id} has no {CONFIG_FILE}; the runs of sweeps themselves have none")
    revision = tags.get("mlflow.source.git.commit")
    return Origin(
        name=name,
        revision=revision,
        changed=tags.get("git_dirty") != "false",
        overrides=tags.get("overrides", ""),
        data_hash=tags.get("data_hash", ""),
        repeatable=tags.get("repeatable", ""),
        host=tags.get("host", ""),
        config=config,
    )
