"""Students' files run in a process of their own, and what goes wrong there becomes a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnlab.course.function_exercise import grade_functions
from attnlab.course.lessons import functions_of
from attnlab.course.sentence import language_of

SCORES = [function for function in functions_of(5) if function.name == "scaled_dot"]


def graded(folder: Path, text: str, seconds: float = 60) -> list[str]:
    file = folder / "mine.py"
    file.write_text(text, "utf-8")
    return [sentence.en for sentence in grade_functions(SCORES, file, seed=1, seconds=seconds)]


def test_right_function_passes_in_its_own_process(tmp_path):
    text = "def scaled_dot(q, k):\n    return (k @ q[:, :, None])[:, :, 0] / k.shape[2] ** 0.5\n"
    assert graded(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def scaled_dot(query, keys)\n    return 1\n", "error at mine.py:1: SyntaxError"),
        ("import no_such_package\n", "error at mine.py:1: ModuleNotFoundError"),
        ("def scaled_dot(query, keys):\n    x = 1\n    return x / 0\n", "error at mine.py:3: Zero"),
        ("def scaled_dot(query):\n    return query\n", "error at mine.py: TypeError"),
        ("import sys\nsys.exit(0)\n", "error at mine.py:2: SystemExit"),
        ("import os\nos._exit(3)\n", "mine.py ended the program with exit code 3."),
        (
            "import os, pathlib, sys\n"
            "pathlib.Path(sys.argv[1], 'answers.json').write_text('[]')\nos._exit(0)\n",
            "mine.py ended the program with exit code 0.",
        ),
        ("", "mine.py has no function scaled_dot(query, keys)."),
        ("def scaled_dot(query, keys):\n    pass\n", "scaled_dot returns NoneType"),
        ("def scaled_dot(query, keys):\n    return keys\n", "must have the shape (3, 5), and has"),
        (
            "def scaled_dot(query, keys):\n    return keys[:, :, 0] / 0 * 0\n",
            "contains NaN or infinity",
        ),
    ],
)
def test_failure_of_a_file_is_one_sentence(tmp_path, text, says):
    found = graded(tmp_path, text)
    assert len(found) == 1
    assert says in found[0]


def test_right_values_in_place_have_no_gradient_to_learn_from(tmp_path):
    text = (
        "import torch\n\n"
        "def scaled_dot(query, keys):\n"
        "    root = (query[:, None] * keys).sum(2).exp()\n"
        "    scores = root.log() / keys.shape[2] ** 0.5\n"
        "    root.zero_()\n"
        "    return scores\n"
    )
    (found,) = graded(tmp_path, text)
    assert "the values are right, but no gradient flows" in found


def test_file_that_does_not_end_is_stopped(tmp_path):
    found = graded(tmp_path, "while True:\n    pass\n", seconds=1)
    assert found == ["mine.py did not end within 1 seconds."]


def test_file_may_print_and_import_its_neighbours(tmp_path, capfd):
    (tmp_path / "neighbour.py").write_text("def root(n):\n    return n**0.5\n", "utf-8")
    text = (
        "from neighbour import root\n\n"
        "def scaled_dot(q, k):\n    print('hello')\n"
        "    return (k @ q[:, :, None])[:, :, 0] / root(k.shape[2])\n"
    )
    assert graded(tmp_path, text) == []
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "hello" in printed.err


def test_seed_draws_other_inputs():
    first, again, other = (SCORES[0].draw(np.random.default_rng(seed))[0][0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "ko"}, "ko"),
        ({}, "en"),
    ],
)
def test_language_is_that_of_the_locale(environment, language):
    assert language_of(environment) == language
