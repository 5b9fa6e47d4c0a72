"""Grading of a student's file: functions in Python, settings or a conclusion in YAML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from attnlab.course.function_exercise import grade_functions
from attnlab.course.lessons import LESSONS, functions_of
from attnlab.course.sentence import RefusalError, Sentence
from attnlab.errors import show

_NAME = re.compile(r"lesson-(\d+)")


def check(lesson: str, file: Path, seed: int = 1) -> list[Sentence]:
    """What is wrong with a student's file; nothing where it is right.

    lesson: `lesson-3`. seed: draws the hidden inputs.

    Raises ExperimentError where a conclusion is about a sweep that cannot be read.
    """
    try:
        return _grade(_number_of(lesson), file, seed)
    except RefusalError as refusal:
        return refusal.sentences


def _grade(lesson: int, file: Path, seed: int) -> list[Sentence]:
    if not file.is_file():
        raise _refusal(f"{file} 파일이 없습니다.", f"there is no file {file}.")
    if file.suffix == ".py":
        return grade_functions(functions_of(lesson), file, seed)
    if file.suffix in (".yaml", ".yml"):
        return _grade_yaml(lesson, file)
    raise _refusal(
        f"{file}: 이름이 .py(함수)나 .yaml(설정, 결론)로 끝나야 합니다.",
        f"{file} must end in .py (functions) or .yaml (settings, a conclusion).",
    )


def _refusal(ko: str, en: str) -> RefusalError:
    return RefusalError([Sentence(ko, en)])


def _number_of(lesson: str) -> int:
    found = _NAME.fullmatch(lesson)
    if found is None or int(found[1]) not in LESSONS:
        last, got = f"lesson-{LESSONS[-1]}", show(lesson)
        raise _refusal(
            f"강의 이름은 lesson-1부터 {last}까지인데 {got}입니다.",
            f"the lesson must be lesson-1 to {last}, got {got}.",
        )
    return int(found[1])


def _grade_yaml(lesson: int, file: Path) -> list[Sentence]:
    content = _read_yaml(file)
    if isinstance(content, dict) and not {"system", "conclusion"}.isdisjoint(content):
        from attnlab.course.conclusion import grade_conclusion, read_conclusion  # imports reports

        named = {str(name): value for name, value in content.items()}
        return grade_conclusion(read_conclusion(named), file.resolve().parent)
    is_list = isinstance(content, list) and all(isinstance(line, str) for line in content)
    if not is_list:
        conclusion = "system: ..., than: ..., metric: ..., conclusion: ..."
        raise _refusal(
            f"{file}: 설정의 목록(- padding=post_post)이나 결론({conclusion})이어야 합니다.",
            f"{file} must be a list of settings (- padding=post_post), or a conclusion "
            f"({conclusion}).",
        )
    from attnlab.course.settings_exercise import SETTINGS, grade_settings  # imports Lightning

    if lesson not in SETTINGS:
        of_settings = ", ".join(f"lesson-{number}" for number in SETTINGS)
        raise _refusal(
            f"lesson-{lesson}에는 설정을 찾는 연습 문제가 없습니다. {of_settings}에 있습니다.",
            f"lesson-{lesson} asks for no settings; {of_settings} do.",
        )
    return grade_settings(SETTINGS[lesson], content)


def _read_yaml(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise _refusal(
            f"{file}: YAML로 읽을 수 없습니다. {reason}",
            f"{file} cannot be read as YAML: {reason}",
        ) from None
