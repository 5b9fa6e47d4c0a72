"""Grading of a student's file: functions in Python, settings or a conclusion in YAML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from attnlab.course.function_exercise import grade_functions
from attnlab.course.lessons import LESSONS, functions_of
from attnlab.course.sentence import Sentence
from attnlab.errors import ExperimentError, show

_NAME = re.compile(r"lesson-(\d+)")


def check(lesson: str, file: Path, seed: int = 1) -> list[Sentence]:
    """What is wrong with a student's file; nothing where it is right.

    lesson: `lesson-3`. seed: draws the hidden inputs.

    Raises ExperimentError for a lesson that there is not, and for a file that is none of its
    exercises.
    """
    number = _number_of(lesson)
    if not file.is_file():
        raise ExperimentError(f"{file} is no file")
    if file.suffix == ".py":
        return grade_functions(functions_of(number), file, seed)
    if file.suffix in (".yaml", ".yml"):
        return _grade_yaml(number, file)
    raise ExperimentError(f"{file} must end in .py (functions) or .yaml (settings, a conclusion)")


def _number_of(lesson: str) -> int:
    found = _NAME.fullmatch(lesson)
    if found is None or int(found[1]) not in LESSONS:
        raise ExperimentError(
            f"the lesson must be lesson-1 to lesson-{LESSONS[-1]}, got {show(lesson)}"
        )
    return int(found[1])


def _grade_yaml(lesson: int, file: Path) -> list[Sentence]:
    content = _read_yaml(file)
    if isinstance(content, dict):
        from attnlab.course.conclusion import grade_conclusion, read_conclusion  # imports reports

        named = {str(name): value for name, value in content.items()}
        return grade_conclusion(read_conclusion(named), file.resolve().parent)
    is_list = isinstance(content, list) and all(isinstance(line, str) for line in content)
    if not is_list:
        raise ExperimentError(
            f"{file} must be a list of settings (- padding=post_post), or a conclusion "
            "(system: ..., than: ..., metric: ..., conclusion: ...)"
        )
    from attnlab.course.settings_exercise import SETTINGS, grade_settings  # imports Lightning

    if lesson not in SETTINGS:
        of_settings = ", ".join(f"lesson-{number}" for number in SETTINGS)
        raise ExperimentError(f"lesson-{lesson} asks for no settings; {of_settings} do")
    return grade_settings(SETTINGS[lesson], content)


def _read_yaml(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ExperimentError(f"{file} cannot be read as YAML: {reason}") from None
