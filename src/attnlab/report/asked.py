"""What a run was asked: its choices and settings, the command, the code, and its page in MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlab.experiment.changes import Change


@dataclass(frozen=True)
class AskedSweep:
    """The sweep of a run, as its page shows it.

    name: `attention × seed`.
    command: that repeats it, for a shell.
    run_page: the address of its run in MLflow; "" where it has none.
    compare_command: that compares its runs.
    comparison: the page of their comparison, relative to this one; "" where there is none yet.
    """

    name: str
    points: int
    command: str
    run_page: str
    compare_command: str
    comparison: str


@dataclass(frozen=True)
class Asked:
    """What a run was asked, as its page shows it.

    title: the name of the run in its sweep; "" outside of sweeps.
    changes: what differs from the defaults, and what was typed.
    choices: {group: the chosen file}, all of them, as shown.
    command: that repeats it, for a shell.
    revision: of the code.
    has_local_changes: whether the code differs from that revision; None where that is unknown.
    started: the day and the time, UTC; "" where no run recorded it.
    run_id, run_page: the run in MLflow and the address of its page; "" where it has none.
    server: the command that starts the server of that page; "" where one is running elsewhere.
    sweep: that the run is of; None outside of sweeps.
    """

    title: str = ""
    changes: Sequence[Change] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    revision: str = ""
    has_local_changes: bool | None = None
    started: str = ""
    run_id: str = ""
    run_page: str = ""
    server: str = ""
    sweep: AskedSweep | None = None
