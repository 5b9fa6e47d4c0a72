"""What Hydra, its sweepers and launchers stumble over in their node is a sentence; an error of our own is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from entry_points import Command
from joblib.externals.loky.process_executor import TerminatedWorkerError

from attnlab.errors import ExperimentError
from attnlab.experiment import inside_hydra

CANNOT = "error: hydra: the sweeper, the launcher or the help text of this node of the config cannot be used (%s);"
# What hydra: of a file says, the command, and what is told.
FAULTS = {
    "no sweeper": ("{sweeper: null}", ("-m", "seed=1,2"), "error: hydra.sweeper must be there, with what it is"),
    "no launcher": ("{launcher: null}", ("-m", "seed=1,2"), "error: hydra.launcher must be there, with what it is"),
    "no jobs in a batch": ("{sweeper: {max_batch_size: 0}}", ("-m", "seed=1,2"), CANNOT % "AssertionError"),
    "more failures than jobs": (
        "{sweeper: {max_failure_rate: 2}}", ("-m", "seed=1,2", "sweep=optuna"), CANNOT % "AssertionError",
    ),
    "no direction": (
        "{sweeper: {direction: 3}}", ("-m", "seed=1,2", "sweep=optuna"),
        CANNOT % "AttributeError: 'int' object has no attribute 'name'",
    ),
    "no workers": (
        "{launcher: {n_jobs: 0}}", ("-m", "seed=1,2", "launcher=joblib"),
        CANNOT % "ValueError: n_jobs == 0 in Parallel has no meaning",
    ),
    "unknown part of a help text": ("{help: {template: $X}}", ("--help",), CANNOT % "KeyError: 'X'"),
    "a list": ("[]", (), "error: a config file cannot take its place in the config: "),
    "nothing": ("null", (), "error: experiment=theirs cannot be composed (AttributeError: "),
    "a variable that is not there": ("{job: {env_copy: [NOPE]}}", (), "(KeyError: 'NOPE'); look at what its file says"),
}  # fmt: skip


@pytest.mark.parametrize(("node", "arguments", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_a_sentence(
    command: Command, folder: Path, tiny: tuple[str, ...], node: str, arguments: tuple[str, ...], said: str
) -> None:
    (folder / "theirs" / "experiment").mkdir(parents=True)
    # Behind the choice of a sweeper or a launcher, which would bring its own.
    text = f"# @package _global_\nhydra: {node}\n"
    (folder / "theirs" / "experiment" / "theirs.yaml").write_text(text)
    ended = command("prepare.py", "-cd", "theirs", *arguments, "experiment=theirs", *tiny)
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert ended.code == 1


def test_a_worker_that_is_killed_is_no_fault_of_the_config() -> None:
    def submitted():
        re.sub("x", lambda _: broken(), "x")  # some library's frame

    def broken():
        raise TerminatedWorkerError("A worker process was unexpectedly terminated.")

    with pytest.raises(ExperimentError, match="a worker of the sweep is gone"), inside_hydra.its_own_faults_told():
        submitted()


def test_an_error_of_our_own_keeps_its_traceback() -> None:
    def hydra(task):
        re.sub("x", task, "x")  # some library's frame

    def ours(_):
        raise KeyError("ours")

    code = compile("def call(task):\n    task()\n", str(Path(inside_hydra.__file__).with_name("train.py")), "exec")
    exec(code, of_pipelines := {})
    with pytest.raises(KeyError, match="ours"), inside_hydra.its_own_faults_told():
        hydra(lambda _: of_pipelines["call"](lambda: ours(None)))
    with pytest.raises(ExperimentError, match=r"\(KeyError: 'ours'\)"), inside_hydra.its_own_faults_told():
        hydra(ours)
