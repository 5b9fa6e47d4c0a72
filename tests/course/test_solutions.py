"""The grading of students' files: right ones pass, and wrong ones are told what differs.

A wrong solution is one function of tests/course/solutions/wrong/; the others of its lesson are
those of a right solution. Its first line has words of the answer.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.course import student_file, student_process
from attnlab.course.check import check
from attnlab.course.lessons import LESSONS

SOLUTIONS = Path(__file__).parent / "solutions"
RIGHT = sorted((SOLUTIONS / "right").glob("*.py"))
WRONG = sorted((SOLUTIONS / "wrong").glob("*.py"))


@pytest.fixture(autouse=True)
def _same_process(monkeypatch):
    """Import torch once, and not for each solution; tests of student_file.py start processes."""

    def run(program: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        student_process.main(Path(program[-2]), Path(program[-1]))
        return subprocess.CompletedProcess(program, 0)

    monkeypatch.setattr(student_file.subprocess, "run", run)
    monkeypatch.setattr(sys, "path", [*sys.path])


def lesson_of(path: Path) -> str:
    return f"lesson-{int(path.name.split('_')[1])}"


def with_right_functions(wrong: Path, folder: Path) -> Path:
    """The wrong function behind the right ones of its lesson, as one file of a student's."""
    text = wrong.read_text("utf-8")
    kind = "torch" if "import torch" in text else "numpy"
    right = SOLUTIONS / "right" / f"{wrong.name[: len('lesson_00')]}_{kind}.py"
    file = folder / "mine.py"
    file.write_text(f"{right.read_text('utf-8')}\n\n{text}", "utf-8")
    return file


def test_there_are_solutions_of_every_lesson():
    assert len(RIGHT) >= 20
    assert len(WRONG) >= 50
    for solutions in (RIGHT, WRONG):
        assert {lesson_of(path) for path in solutions} == {f"lesson-{n}" for n in LESSONS}


@pytest.mark.parametrize("file", RIGHT, ids=lambda path: path.stem)
@pytest.mark.parametrize("seed", [1, 2])
def test_right_solution_passes(file, seed):
    assert check(lesson_of(file), file, seed) == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda path: path.stem)
def test_wrong_solution_is_told_what_differs(wrong, tmp_path):
    found = check(lesson_of(wrong), with_right_functions(wrong, tmp_path))
    assert found
    says = re.match(r"# says: (.*)", wrong.read_text("utf-8"))
    assert says is not None
    assert says[1] in " ".join(sentence.en for sentence in found)
    for sentence in found:
        assert sentence.ko != sentence.en
