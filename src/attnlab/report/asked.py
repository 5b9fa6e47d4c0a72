"""What a run was asked: its choices and settings, the command, the code, and its page in MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlab.experiment.changes import Change


@dataclass(frozen=True)
class Asked:
    """What a run was asked, as its page shows it.

    changes: what differs from the defaults.
    choices: {group: the chosen file}, all of them, as shown.
    command: that repeats it, for a shell.
    revision: of the code.
    has_local_changes: whether the code differs from that revision; None where that is unknown.
    started: the day and the time, UTC; "" where no run recorded it.
    run_id, run_page: the run in MLflow and the address of its page; "" where it has none.
    """

    changes: Sequence[Change] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    revision: str = ""
    has_local_changes: bool | None = None
    started: str = ""
    run_id: str = ""
    run_page: str = ""
