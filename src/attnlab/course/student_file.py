"""A student's file: its functions are called in a process of their own, with a time limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from attnlab.course.student_process import ANSWERS, ARGUMENTS, CALLS, RESULTS

Status = Literal["answered", "missing", "failed", "no numbers", "too slow", "ended"]


@dataclass(frozen=True)
class Call:
    """A function's name, and what it is called with.

    parts: how many results it returns.
    gradient: whether the first of them must have a gradient for every real argument.
    """

    function: str
    arguments: Sequence[Any]
    parts: int = 1
    gradient: bool = False


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a call.

    results: arrays, where the status is `answered`.
    changed: the arguments that the function has changed, by their place.
    without_gradient: the arguments that the first result has no gradient for.
    type: of the exception, or of a result without numbers.
    line: of the student's file, where an exception came from.
    code: the exit code, where the process has ended.
    """

    status: Status
    results: Sequence[NDArray[Any]] = ()
    changed: Sequence[int] = ()
    without_gradient: Sequence[int] = ()
    type: str = ""
    message: str = ""
    line: int | None = None
    code: int | None = field(default=None)


def call_functions(file: Path, calls: Sequence[Call], seconds: float) -> list[Answer]:
    """An answer to each call."""
    with tempfile.TemporaryDirectory(prefix="attnlab-check-") as name:
        folder = Path(name)
        _write_calls(folder, calls)
        # One thread: the arrays are small, and the student's machine has other things to do.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        program = [sys.executable, "-m", "attnlab.course.student_process"]
        try:
            done = subprocess.run(
                [*program, str(folder), str(file.resolve())],
                timeout=seconds,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=2,  # what the student prints stands apart from what the grading says
            )
        except subprocess.TimeoutExpired:
            return [Answer("too slow")] * len(calls)
        if not (folder / RESULTS).is_file() or not (folder / ANSWERS).is_file():
            return [Answer("ended", code=done.returncode)] * len(calls)
        return _read_answers(folder)


def _write_calls(folder: Path, calls: Sequence[Call]) -> None:
    arrays = {}
    written = []
    for number, call in enumerate(calls):
        arguments: list[dict[str, Any]] = []
        for place, argument in enumerate(call.arguments):
            if isinstance(argument, np.ndarray):
                key = f"{number}.{place}"
                arrays[key] = argument
                arguments.append({"array": key})
            else:
                arguments.append({"value": argument})
        written.append(
            {
                "function": call.function,
                "arguments": arguments,
                "parts": call.parts,
                "gradient": call.gradient,
            }
        )
    np.savez(folder / ARGUMENTS, **arrays)  # type: ignore[arg-type]
    (folder / CALLS).write_text(json.dumps(written), encoding="utf-8")


def _read_answers(folder: Path) -> list[Answer]:
    answers = []
    with np.load(folder / RESULTS) as results:
        for answer in json.loads((folder / ANSWERS).read_text(encoding="utf-8")):
            fields = {name: answer[name] for name in answer if name not in ("results", "parts")}
            arrays = [results[key] for key in answer.get("results", ())]
            answers.append(Answer(results=arrays, **fields))
    return answers
