"""Entry points run in forks of one process that has everything imported: a command costs what it does, not its start.

    python tests/faults/warmed.py <folder of the scripts>

reads a JSON object a line, {"script", "arguments", "folder", "environment", "seconds"}, and answers each with how the
command ended. A fork is what a new process is: nothing that a command changes is seen by the next one. The process
must have one thread alone when it forks, so it is no part of the one that runs the tests.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMPORTED = (
    "datasets",
    "matplotlib.pyplot",
    "mlflow",
    "pytorch_lightning",
    "rich.console",
    "rich.progress",
    "rich.table",
    "sacrebleu",
    "torchmetrics",
    "attnlab.data.hub_loading",
    "attnlab.evaluation.evaluate",
    "attnlab.evaluation.write",
    "attnlab.plots.heat_map",
    "attnlab.report.translation",
    "attnlab.training.seq2seq_module",
    "attnlab.training.trainer",
    "attnlab.tracking.run",
)
NOBODY = 65534
COMPOSED = ([], ["task=classification"])  # parsers and validators keep what they learnt of the configs


@dataclass(frozen=True)
class Ended:
    """How a command ended. cpu: seconds of it and of the processes that it waited for."""

    code: int
    out: str
    err: str
    seconds: float
    cpu: float
    timed_out: bool


class Warmed:
    """The process that forks, from the side of those who give it commands."""

    def __init__(self, pipelines: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(pipelines)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self,
        script: str,
        arguments: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        seconds: float,
        unprivileged: bool = False,
    ) -> Ended:
        """`python <script> <arguments>` in a folder, killed when it takes longer than so many seconds.

        environment: instead of what the process itself has; a name with an empty text is taken out.
        unprivileged: as a user who is nobody, where this one may do everything.
        """
        request = {
            "script": script,
            "arguments": list(arguments),
            "folder": str(folder),
            "environment": dict(environment),
            "seconds": seconds,
            "unprivileged": unprivileged,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the warmed process ended with {self._process.wait()}")
        return Ended(**json.loads(answer))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)


def serve(pipelines: Path) -> None:
    """Answer commands until there are no more."""
    # What a command prints goes to files; only answers leave by the stream that was this process's output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name in IMPORTED:
        importlib.import_module(name)
    composition = importlib.import_module("attnlab.experiment.composition")
    for overrides in COMPOSED:
        composition.compose(overrides)
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        answers.write(json.dumps(_answer(pipelines, json.loads(line))) + "\n")
        answers.flush()


def _answer(pipelines: Path, request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        used = _cpu()
        child = os.fork()
        if child == 0:
            _be_the_command(pipelines, request, out.fileno(), err.fileno())
        status, timed_out = _wait(child, started + request["seconds"])
        code = os.waitstatus_to_exitcode(status)
        told = {}
        for name, file in (("out", out), ("err", err)):
            file.seek(0)
            told[name] = file.read().decode("utf-8", "backslashreplace")
    took = {"seconds": time.monotonic() - started, "cpu": _cpu() - used}
    return {"code": code, "timed_out": timed_out, **told, **took}


def _wait(child: int, until: float) -> tuple[int, bool]:
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status, False
        time.sleep(0.01)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # so early that it has no group of its own yet
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1], True


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _be_the_command(pipelines: Path, request: dict[str, Any], out: int, err: int) -> None:
    """What a new interpreter would do with the command; never returns."""
    code: object = 0
    try:
        os.setsid()
        for source, stream in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(source, stream)
        os.chdir(request["folder"])
        for name, value in request["environment"].items():
            os.environ.pop(name, None)
            if value:
                os.environ[name] = value
        tempfile.tempdir = None
        if request["unprivileged"] and os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        path = str(pipelines / request["script"])
        sys.argv = [path, *request["arguments"]]
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as ended:
            code = ended.code
            if not isinstance(code, int | None):
                print(code, file=sys.stderr)
                code = 1
        except BaseException:  # what would be a stack trace at the shell
            traceback.print_exc()
            code = 1
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        os._exit(int(code or 0))  # type: ignore[call-overload]


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
