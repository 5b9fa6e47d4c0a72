"""The graded functions of each lesson, in a module each."""

from __future__ import annotations

import importlib

from attnlab.course.function_exercise import FunctionExercise

LESSONS = range(1, 13)


def functions_of(lesson: int) -> tuple[FunctionExercise, ...]:
    """The functions that a student writes in a lesson."""
    module = importlib.import_module(f"{__name__}.lesson_{lesson:02}")
    functions: tuple[FunctionExercise, ...] = module.FUNCTIONS
    return functions
