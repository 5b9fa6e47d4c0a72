"""The subcommand that says how a sweep stands, waits for it, or cancels its jobs on Slurm."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    from attnlab.runs.sweep_record import SweepFolder
    from attnlab.runs.sweep_state import SweepState
    from attnlab.runs.tracking import Tracking

_LOOK_INTERVAL = 5.0  # seconds
_PATIENCE = 120.0  # seconds for cancelled jobs to end, which Slurm grants half a minute
_SILENT = "which of its jobs Slurm still has is not known, for squeue does not answer here"


def add_sweep(parsers: Any) -> None:
    parser = parsers.add_parser(
        "sweep",
        help="say how a sweep stands, wait for it, or cancel its jobs on Slurm",
        allow_abbrev=False,
        description=(
            "Say how a sweep stands, also while another command leads it or Slurm has its jobs; "
            "wait for its end; or cancel what Slurm has of it. The exit code of `wait` is 1 where "
            "a point failed or is missing."
        ),
    )
    parser.add_argument("action", choices=list(_ACTIONS), help="what to do")
    parser.add_argument(
        "sweep", metavar="SWEEP", nargs="?", default="last",
        help="the beginning of its identity; default: the one that was started last",
    )  # fmt: skip
    parser.add_argument(
        "--runs", metavar="FOLDER", type=Path, default=Path("runs"),
        help="paths.runs of the sweep; default: %(default)s",
    )  # fmt: skip
    parser.set_defaults(run="sweep.sweep")


def sweep(args: argparse.Namespace) -> None:
    from attnlab.runs.sweep_record import find_sweep

    _ACTIONS[args.action](find_sweep(args.runs.resolve(), args.sweep))


def status(folder: SweepFolder) -> None:
    """Print a line for each point, and one for the sweep."""
    from attnlab.runs.sweep_state import FAILED, STOPPED, state_of

    state = state_of(folder)
    print(f"sweep {state.record.identity} ({state.record.name})")
    for point in state.points:
        if point.job is None and point.slurm is None:  # thousands, perhaps
            continue
        took = "" if point.since is None else str(point.since)
        words = [f"{point.number:>4}  {point.state:<11}", f"{took:>8}"]
        if point.slurm is not None:
            words.append("Slurm's job {} is {}".format(*point.slurm))
        if point.job is not None:
            words.append(point.job.name)
            if point.state in (FAILED, STOPPED) and point.job.error:
                words.append(f"({point.job.error})")
        print("  ".join(words).rstrip())
    print(line_of(state))


def line_of(state: SweepState) -> str:
    """`3 finished, 2 running, 1 failed of 6 points; 1 process leads it`, or what to do next."""
    counts = ", ".join(f"{count} {name}" for name, count in state.counts.items())
    line = f"{counts} of {state.record.points} points"
    if state.leaders:
        leads = "1 process leads" if state.leaders == 1 else f"{state.leaders} processes lead"
        return f"{line}; {leads} it"
    if state.slurm_is_silent and state.unfinished:
        return f"{line}, by its records alone; {_SILENT}"
    if state.goes_on:
        return f"{line}; no process leads it, and its jobs on Slurm go on"
    if not state.unfinished:
        return f"{line}; compare them: {state.record.compare_command}"
    return f"{line}; it does not go on by itself: {shlex.join(state.record.command)}"


def wait(folder: SweepFolder) -> None:
    """Wait until nothing of it goes on; say so at each change.

    Raises ExperimentError where not all points are finished then, or this machine has no Slurm that
    could say so.
    """
    from attnlab.runs.sweep_state import state_of

    said = None
    while True:
        state = state_of(folder)
        line = line_of(state)
        if line != said:
            print(line, file=sys.stderr, flush=True)
            said = line
        if not state.goes_on:
            break
        if state.slurm_is_silent and not state.leaders and shutil.which("squeue") is None:
            raise ExperimentError("there is no squeue on this machine; wait on the cluster")
        time.sleep(_LOOK_INTERVAL)
    if state.unfinished:
        raise ExperimentError(
            f"{state.unfinished} of {state.record.points} points are not finished: {line}"
        )


def cancel(folder: SweepFolder) -> None:
    """Cancel its jobs on Slurm, those that wait and those that run.

    Where no process leads the sweep, wait for their end, and close the runs that they left open.
    """
    from attnlab.runs.slurm_jobs import cancel_jobs
    from attnlab.runs.sweep_state import state_of

    state = state_of(folder)
    if state.slurm_is_silent:
        raise ExperimentError(f"nothing was cancelled: {_SILENT}")
    jobs = [point.slurm[0] for point in state.points if point.slurm is not None]
    if not jobs:
        on_this_machine = "; stop the command that leads it by Ctrl-C" if state.leaders else ""
        raise ExperimentError(
            f"Slurm has no jobs of the sweep {state.record.identity}{on_this_machine}"
        )
    cancel_jobs(jobs)
    print(f"cancelled: {', '.join(jobs)}; the same command of the sweep goes on from there")
    if not state.leaders:
        _close_when_ended(folder)


def _close_when_ended(folder: SweepFolder) -> None:
    from attnlab.runs.slurm_jobs import SweepOnSlurm
    from attnlab.runs.sweep_leader import close_cancelled

    until = time.monotonic() + _PATIENCE
    while SweepOnSlurm(folder).states() != {} and time.monotonic() < until:
        time.sleep(_LOOK_INTERVAL)
    close_cancelled(folder, _tracking_of(folder), folder.path.parents[1])


def _tracking_of(folder: SweepFolder) -> Tracking:
    """The tracker that the command of a sweep named."""
    from attnlab.experiment.command_settings import DeliverSettings, read_settings
    from attnlab.runs.sweep_record import unquoted
    from attnlab.runs.tracking import Tracking

    record = folder.read()
    if record.run_id is None:
        return Tracking()
    of_tracking = ("tracking=", "tracking.")
    given = [unquoted(text) for text in record.overrides if text.startswith(of_tracking)]
    return read_settings(DeliverSettings, given).tracking.that_only_warns()


_ACTIONS: dict[str, Callable[[Any], None]] = {
    "status": status,
    "wait": wait,
    "cancel": cancel,
}
