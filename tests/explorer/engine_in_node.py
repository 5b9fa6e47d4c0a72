"""The engine of exported pages in Node, beside Python's answers to the same questions."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import ExperimentError
from attnlab.explorer.exported_model import exported
from attnlab.explorer.exported_page import ENGINE
from attnlab.explorer.served_models import page_of, validated
from attnlab.tasks.predictor import Predictor

Question = tuple[str, Mapping[str, Any]]
TOLERANCE = 1e-5


class Engine:
    """The engine in a process of Node."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def answers(self, model: Predictor, questions: Sequence[Question]) -> list[Any]:
        """The answers about one model; {"error": sentence} where the engine refuses."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = [(name, {"model": "it", **body}) for name, body in questions]
        line = json.dumps({"models": [exported("it", model)], "questions": asked})
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answers: list[Any] = json.loads(self.process.stdout.readline())
        return answers


@contextmanager
def engine_in_node() -> Iterator[Engine]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    command = [node, str(Path(__file__).with_name("engine.mjs")), str(ENGINE / "backend.js")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield Engine(process)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 0


def answers_of_python(model: Predictor, questions: Sequence[Question]) -> list[Any]:
    """What the explorer's server answers."""
    analyses = page_of("it", model).analyses
    answers = []
    for name, body in questions:
        try:
            answer = validated(analyses[name])(model, **body)
        except ExperimentError as error:
            answer = {"error": str(error)}
        # As the page reads it
        answers.append(json.loads(json.dumps(answer)))
    return answers


def assert_same(found: Any, expected: Any, place: str = "", tolerance: float = TOLERANCE) -> None:
    """Equal, numbers within the tolerance."""
    if isinstance(expected, float):
        assert isinstance(found, int | float), f"{place}: {found!r}, not {expected!r}"
        # A sum of log-probabilities has the rounding of each of them
        is_close = math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance)
        assert is_close, f"{place}: {found}, not {expected}"
    elif isinstance(expected, dict):
        assert isinstance(found, dict), f"{place}: {found!r}, not {expected!r}"
        assert found.keys() == expected.keys(), f"{place}: {found}, not {expected}"
        for key, value in expected.items():
            assert_same(found[key], value, f"{place}.{key}", tolerance)
    elif isinstance(expected, list):
        assert isinstance(found, list), f"{place}: {found!r}, not {expected!r}"
        assert len(found) == len(expected), f"{place}: {found}, not {expected}"
        for i, value in enumerate(expected):
            assert_same(found[i], value, f"{place}[{i}]", tolerance)
    else:
        assert found == expected, f"{place}: {found!r}, not {expected!r}"


def assert_engine_answers_as_python(
    engine: Engine,
    model: Predictor,
    questions: Sequence[Question],
    tolerance: float = TOLERANCE,
) -> list[Any]:
    """The answers, which are those of Python."""
    expected = answers_of_python(model, questions)
    found = engine.answers(model, questions)
    for question, ours, theirs in zip(questions, found, expected, strict=True):
        assert_same(ours, theirs, f"{question} -> ", tolerance)
    return expected
