"""A run on disk: the folder `run` of its experiment, evaluation or sweep.

`run.json` holds what the run is and how it ended, two spools hold what it measured, `outbox` holds
the files that become its artifacts, and `mlflow.json` how much of all this MLflow has. This module
does not import mlflow.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from attnlab.files import read_own_record
from attnlab.runs.shared_views import View
from attnlab.training.spool import RUN_FOLDER

Status = Literal["FINISHED", "FAILED", "KILLED"]

# In the run folder.
STATE, UPLOADED, OUTBOX, LATER_METRICS = "run.json", "mlflow.json", "outbox", "later_metrics.jsonl"
# Beside it.
DONE = "done.json"  # written when the training is over
MODEL = "model"
# Among the artifacts of a run.
CONFIG_FILE = "config.yaml"  # its config as it was composed
HEAT_MAPS = "attention"
# In the outbox: pictures that MLflow shows beside those of other runs.
IMAGES = "images"
REPORT = "report"
# Tags of a run in a sweep: the sweep's identity, and the run of the sweep itself.
SWEEP_TAG, PARENT_TAG = "sweep", "mlflow.parentRunId"
_OF_A_SWEEP = (SWEEP_TAG, PARENT_TAG)

# How metrics are named in MLflow, and at which steps they stand. A run that was created there by an
# earlier version, whose layout is 1, keeps it: MLflow's clients cannot move what was logged.
LAYOUT = 2


@dataclass(frozen=True)
class ServedModel:
    """What MLflow says of a trained model's answers, in its own names of types.

    A list of one type stands for lists of it, a mapping with the key `*` for mappings of any keys,
    another mapping for an object with these properties. A name that ends with `?` may be missing.

    kind: of the model, `translator`.
    answer: the columns of an answer.
    settings: of a request, beside `attention`; each may be left out.
    """

    kind: str
    answer: Mapping[str, Any]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """What there is to know of a run when it starts.

    config: the whole resolved config; environment interpolations stay unresolved, so that no secret
        is in it.
    identity: the experiment's identity.
    data_digest: SHA-256 of the prepared data.
    data_source: where the prepared data lie, from the runs folder on where they are in it.
    data_facts: a few figures about them (sizes, lengths), shown beside the dataset.
    data_columns: what a row of them holds.
    served: what the trained model answers; None for a run without a model.
    example: an input text.
    tags: more tags, which show the latest start; a sweep puts `mlflow.parentRunId` here.
    name: of the run; None makes one of the choices.
    command: the words that repeat it in a shell; a run that starts again keeps those that it
        started with.
    note: stands first in its description, Markdown.
    title: the name of its experiment; None takes that of the config by the choices of conf/ alone.
    params: its params in MLflow; None as for the title.
    main_metrics: of a split, those that a person looks at first; empty shows all.
    view: how MLflow shows the runs of its task; None for runs of several tasks.
    """

    config: Mapping[str, Any]
    identity: str
    data_digest: str
    data_source: str = ""
    data_facts: Mapping[str, Any] = field(default_factory=dict)
    data_columns: tuple[str, ...] = ("source", "target")
    served: ServedModel | None = None
    example: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    command: tuple[str, ...] = ()
    note: str | None = None
    title: str | None = None
    params: Mapping[str, str] | None = None
    main_metrics: tuple[str, ...] = ()
    view: View | None = None

    @property
    def sweep(self) -> str | None:
        """The identity of the sweep that the run is of; None outside of sweeps."""
        return self.tags.get(SWEEP_TAG)

    def after(self, before: RunRecord) -> RunRecord:
        """The record of a run that starts again.

        It keeps the command that it started with, its name where it is given none, and the sweep
        that it is of until another one takes it, as MLflow does.
        """
        kept = replace(self, command=before.command or self.command, name=self.name or before.name)
        if SWEEP_TAG not in before.tags or SWEEP_TAG in self.tags:
            return kept
        of_sweep = {name: before.tags[name] for name in _OF_A_SWEEP if name in before.tags}
        return replace(kept, title=before.title, tags={**of_sweep, **self.tags})


@dataclass(frozen=True)
class RunState:
    """What `run.json` holds. Times are milliseconds since 1970.

    origin: tags of the code and the machine that started the run first.
    log_model: whether the trained model becomes part of the run.
    status: with which the run ended; None while it goes on, and after its process was killed.
    error: why it failed.
    result: what it found, in Markdown; None: its latest metrics.
    comparison: of a sweep: what the comparison of its points says, in Markdown, or the command that
        compares them.
    verdict: of a point of a sweep: what the comparison says of it, in a few words.
    safe_offset: how far its spool may be uploaded: a training that goes on from its last checkpoint
        writes again what lies behind. None: all of it.
    ended: when it finished first, or ended otherwise last.
    """

    record: RunRecord
    origin: Mapping[str, str]
    log_model: bool
    started: int
    status: Status | None = None
    error: str | None = None
    result: str | None = None
    comparison: str | None = None
    verdict: str | None = None
    safe_offset: Annotated[int, Field(ge=0)] | None = 0
    ended: int | None = None


@dataclass(frozen=True)
class UploadedSpool:
    """How far a spool was uploaded: the number of its records that MLflow has.

    A number holds where an offset would not: after a damaged checkpoint, training goes back behind
    what was uploaded, and writes the same records once more, with other times.
    """

    records: int = 0


@dataclass(frozen=True)
class Uploaded:
    """What `mlflow.json` holds: how much of a run MLflow has.

    state: the digest of the state that MLflow has, together with all that belonged to it.
    description: as it was uploaded last.
    tracker: the address of the MLflow that this is about, from the runs folder on for a database in
        it, and its name for the group of runs.
    layout: of the run's metrics in MLflow.
    files: {path among the artifacts: SHA-256} of the files that are logged once, such as the
        report; a file that waits in the outbox is one of them.
    """

    run_id: str
    state: str = ""
    description: str = ""
    tracker: str = ""
    spools: Mapping[str, UploadedSpool] = field(default_factory=dict)
    layout: int = 1
    files: Mapping[str, str] = field(default_factory=dict)


def read_state(place: Path) -> RunState | None:
    """The state of the run of a place; None where it has none.

    Raises ExperimentError for a damaged file.
    """
    path = place / RUN_FOLDER / STATE
    if not path.is_file():
        return None
    remedy = "remove it; MLflow then learns no more of that run, whose files stay"
    return read_own_record(path, RunState, remedy)


def read_uploaded(place: Path) -> Uploaded | None:
    """How much MLflow has of the run of a place; None for nothing.

    Raises ExperimentError for a damaged file.
    """
    path = place / RUN_FOLDER / UPLOADED
    if not path.is_file():
        return None
    remedy = "remove it, and everything is uploaded again, to a new run"
    return read_own_record(path, Uploaded, remedy)


def places_of_runs(place: Path) -> list[Path]:
    """The folders that have a run: of this place and of its evaluations with another search.

    place: the folder of an experiment or a sweep.
    """
    patterns = (f"{RUN_FOLDER}/{STATE}", f"evaluations/*/{RUN_FOLDER}/{STATE}")
    return [path.parents[1] for pattern in patterns for path in sorted(place.glob(pattern))]


def reset_without_checkpoint(place: Path) -> bool:
    """Reset the run of a place, and return True, if it saved no checkpoint.

    The run then starts again as the same run, without its metrics.
    """
    state, uploaded, folder = read_state(place), read_uploaded(place), place / RUN_FOLDER
    if state is not None and (state.safe_offset != 0 or (uploaded is not None and uploaded.spools)):
        return False
    kept = () if state is None else (STATE, UPLOADED)
    clear(folder, *kept)
    return True


def clear(folder: Path, *kept: str) -> None:
    """Remove all in a folder but what is named."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def step_name(step: int) -> str:
    """The folder of one validation; the zeros keep the order of the names that of the steps."""
    return f"step_{step:06d}"
