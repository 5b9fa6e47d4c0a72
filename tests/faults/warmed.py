"""Commands in forks of one process that has everything imported: a command costs what it does, not its start.

multiprocessing's fork server makes the forks. A fork is what a new process is: nothing that one command changes is seen
by the next one.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

IMPORTED = [
    "datasets", "matplotlib.pyplot", "mlflow", "pytorch_lightning", "rich.progress", "sacrebleu", "torchmetrics",
    "attnlab.stages.prepare", "attnlab.stages.train", "attnlab.stages.evaluate", "attnlab.tracking.settings",
]  # fmt: skip
NOBODY = 65534
PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str
    seconds: float
    timed_out: bool


class Warmed:
    """Runs `python pipelines/<script> <arguments>` in forks of a process that has everything imported."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(IMPORTED)

    def run(
        self,
        script: str,
        arguments: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        seconds: float,
        unprivileged: bool = False,
    ) -> Ended:
        """Run a command in a folder; after so many seconds it is killed with all its processes.

        environment: changes to that of the tests; an empty text removes a variable.
        unprivileged: as a user who is nobody, where this one may do everything.
        """
        with tempfile.TemporaryDirectory() as streams:
            started = time.monotonic()
            process = self._context.Process(
                target=_be_the_command, args=(script, arguments, folder, dict(environment), Path(streams), unprivileged)
            )
            process.start()
            process.join(seconds)
            timed_out = process.exitcode is None
            if timed_out:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:  # so early that it has no group of its own yet
                    process.kill()
                process.join()
            out, err = (_read(Path(streams) / name) for name in ("out", "err"))
            return Ended(process.exitcode, out, err, time.monotonic() - started, timed_out)


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "backslashreplace") if path.exists() else ""


def _be_the_command(
    script: str,
    arguments: tuple[str, ...],
    folder: Path,
    environment: dict[str, str],
    streams: Path,
    unprivileged: bool,
) -> None:
    """Do what a new interpreter would do with the command; never returns."""
    code: object = 1
    try:
        multiprocessing.set_start_method("fork", force=True)  # as in a new interpreter; here it is the fork server's
        os.setsid()
        for name, stream in (("out", 1), ("err", 2)):
            os.dup2(os.open(streams / name, os.O_WRONLY | os.O_CREAT), stream)
        os.chdir(folder)
        os.environ.update(environment)
        for name in [name for name, value in environment.items() if not value]:
            del os.environ[name]
        if unprivileged and os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        sys.argv = [str(PIPELINES / script), *arguments]
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # what would be a stack trace at the shell
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 1)
