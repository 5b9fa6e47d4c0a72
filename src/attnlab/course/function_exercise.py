"""Exercises in which a student writes a function; it is tried against the reference.

The inputs are drawn anew for each seed and are of several kinds: several sizes of the batch, one
sentence alone, sentences of one length, pads on either side, large scores. The first kind on which
a function differs from the reference is what the student reads about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.course.sentence import Sentence, shape_text
from attnlab.course.student_file import Answer, Call, call_functions

Array = NDArray[Any]
Inputs = tuple[Any, ...]

# Inputs are float32 (large scores float64); a sum of some dozen products is right to about 1e-6.
RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 1e-4, 1e-5
TIME_LIMIT = 120.0


@dataclass(frozen=True, eq=False)
class Mistake:
    """A frequent mistake: what it computes, and how its results differ from the right ones."""

    function: Callable[..., Any]
    ko: str
    en: str


# Says how results differ: of the inputs, the student's results and the right ones.
Property = Callable[[Inputs, Sequence[Array], Sequence[Array]], Sentence | None]


@dataclass(frozen=True, eq=False)
class FunctionExercise:
    """A function that a student writes.

    arguments: their names, in order.
    draw: the inputs of every kind.
    reference: the right function, with NumPy.
    returns: the names of its results.
    mistakes: are recognised by their results, the first one that agrees.
    properties: are looked at where no mistake is recognised.
    gradient: whether the first result must let gradients through, where it is a torch tensor.
    without_influence: arguments that the result does not depend on, and need have no gradient for.
    """

    name: str
    arguments: tuple[str, ...]
    draw: Callable[[np.random.Generator], list[Inputs]]
    reference: Callable[..., Any]
    returns: tuple[str, ...] = ("result",)
    mistakes: tuple[Mistake, ...] = ()
    properties: tuple[Property, ...] = ()
    gradient: bool = True
    without_influence: tuple[str, ...] = ()


def results_of(function: Callable[..., Any], inputs: Inputs) -> list[Array]:
    """The results of a function of ours as arrays; real inputs are computed in float64."""
    exact = [_as_exact(value) for value in inputs]
    with np.errstate(all="ignore"):
        returned = function(*exact)
    parts = returned if isinstance(returned, tuple) else (returned,)
    return [np.asarray(part) for part in parts]


def _as_exact(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64)
    return value


def grade_functions(
    exercises: Sequence[FunctionExercise], file: Path, seed: int, seconds: float = TIME_LIMIT
) -> list[Sentence]:
    """What is wrong with the functions of a file; nothing where all are right."""
    calls = []
    for exercise in exercises:
        # The name, too, so that no two functions are tried on the same numbers.
        generator = np.random.default_rng([seed, *exercise.name.encode()])
        for inputs in exercise.draw(generator):
            calls.append(Call(exercise.name, inputs, len(exercise.returns), exercise.gradient))

    answers = call_functions(file, calls, seconds)
    found: list[Sentence] = []
    for exercise in exercises:
        tried = []
        for call, answer in zip(calls, answers, strict=True):
            if call.function == exercise.name:
                tried.append(Trial(exercise, tuple(call.arguments), answer))
        found += _first_findings(tried, file, seconds)
    return list(dict.fromkeys(found))  # a file that cannot be read is so for every function


@dataclass(frozen=True, eq=False)
class Trial:
    """A function was called with these inputs, and this came of it."""

    exercise: FunctionExercise
    inputs: Inputs
    answer: Answer

    @cached_property
    def right(self) -> list[Array]:
        return results_of(self.exercise.reference, self.inputs)

    @property
    def is_comparable(self) -> bool:
        """Whether the results have the right shapes."""
        shapes = [result.shape for result in self.answer.results]
        return shapes == [result.shape for result in self.right]

    def about(self, ko: str, en: str) -> Sentence:
        """A sentence behind the function's name and the shapes of the inputs."""
        shapes = []
        for name, value in zip(self.exercise.arguments, self.inputs, strict=True):
            if isinstance(value, np.ndarray) and value.ndim > 1:
                shapes.append(f"{name} {shape_text(value.shape)}")
        place = self.exercise.name
        if shapes:
            place = f"{place} [{', '.join(shapes)}]"
        return Sentence(f"{place}: {ko}", f"{place}: {en}")


def _first_findings(tried: Sequence[Trial], file: Path, seconds: float) -> list[Sentence]:
    """What is wrong with the first trial of a function that did not go right."""
    for trial in tried:
        found = _findings(trial, tried, file, seconds)
        if found:
            return found
    return []


def _findings(trial: Trial, tried: Sequence[Trial], file: Path, seconds: float) -> list[Sentence]:
    """What is wrong with one trial of a function.

    tried: all of its trials, which a known mistake must explain.
    """
    failure = _failure(trial.exercise, trial.answer, file, seconds)
    if failure is not None:
        return [failure]

    found = []
    malformed = _malformed(trial)
    if malformed is not None:
        found.append(malformed)
    elif not _agree(trial.answer.results, trial.right):
        found += _differences(trial, tried)
    elif cut_off := _cut_off(trial):
        names = ", ".join(cut_off)
        found.append(
            trial.about(
                f"값은 맞지만, 결과에서 {names} 쪽으로 기울기가 전해지지 않습니다. "
                "이대로는 모델이 학습되지 않습니다.",
                f"the values are right, but no gradient flows from the result to {names}; "
                "a model would not learn.",
            )
        )
    if trial.answer.changed:
        names = _names(trial, trial.answer.changed)
        found.append(
            trial.about(
                f"입력으로 받은 {names}의 값을 바꾸었습니다. 입력은 그대로 두어야 합니다.",
                f"it changes its input {names}; inputs must stay as they are.",
            )
        )
    return found


def _cut_off(trial: Trial) -> list[str]:
    """The arguments that should have a gradient, and have none."""
    exercise = trial.exercise
    names = [exercise.arguments[place] for place in trial.answer.without_gradient]
    return [name for name in names if name not in exercise.without_influence]


def _names(trial: Trial, places: Sequence[int]) -> str:
    return ", ".join(trial.exercise.arguments[place] for place in places)


def _failure(
    exercise: FunctionExercise, answer: Answer, file: Path, seconds: float
) -> Sentence | None:
    """The sentence on a call without results."""
    name, code = exercise.name, answer.code
    arguments = ", ".join(exercise.arguments)
    if answer.status == "missing":
        return Sentence(
            f"{file.name}에 다음 함수가 없습니다: {name}({arguments})",
            f"{file.name} has no function {name}({arguments}).",
        )
    if answer.status == "failed":
        place = f"{file.name}:{answer.line}" if answer.line is not None else file.name
        error = f"{answer.type}: {answer.message}" if answer.message else answer.type
        return Sentence(f"{place}에서 오류가 났습니다: {error}", f"error at {place}: {error}")
    if answer.status == "no numbers":
        return Sentence(
            f"{name}: 텐서나 배열이 아니라 {answer.type} 값을 돌려주었습니다.",
            f"{name} returns {answer.type} where a tensor or an array must be.",
        )
    if answer.status == "too slow":
        return Sentence(
            f"{file.name}: {seconds:g}초 안에 끝나지 않았습니다.",
            f"{file.name} did not end within {seconds:g} seconds.",
        )
    if answer.status == "ended":
        return Sentence(
            f"{file.name}: 실행 도중에 프로그램이 끝났습니다(종료 코드 {code}).",
            f"{file.name} ended the program with exit code {code}.",
        )
    return None


def _malformed(trial: Trial) -> Sentence | None:
    """The sentence on results whose number or shapes are not the right ones."""
    results, right, returns = trial.answer.results, trial.right, trial.exercise.returns
    if len(results) != len(right):
        names = ", ".join(returns)
        return trial.about(
            f"결과가 {len(right)}개({names})여야 하는데 {len(results)}개입니다.",
            f"it must return {len(right)} results ({names}), and returns {len(results)}.",
        )
    for name, ours, theirs in zip(returns, results, right, strict=True):
        if ours.shape != theirs.shape:
            shape, wanted = shape_text(ours.shape), shape_text(theirs.shape)
            return trial.about(
                f"{name}의 모양이 {wanted}이어야 하는데 {shape}입니다.",
                f"{name} must have the shape {wanted}, and has {shape}.",
            )
    return None


def _not_finite(trial: Trial) -> Sentence | None:
    """The sentence on a result with NaN or infinity."""
    for name, ours in zip(trial.exercise.returns, trial.answer.results, strict=True):
        if not np.isfinite(ours.astype(np.float64)).all():
            return trial.about(
                f"{name}에 NaN이나 무한대가 들어 있습니다.",
                f"{name} contains NaN or infinity.",
            )
    return None


def _agree(results: Sequence[Array], right: Sequence[Array]) -> bool:
    """Whether all results are equal, within the tolerance."""
    if len(results) != len(right):
        return False
    for ours, theirs in zip(results, right, strict=True):
        if ours.shape != theirs.shape:
            return False
        if not np.allclose(
            ours.astype(np.float64),
            theirs.astype(np.float64),
            rtol=RELATIVE_TOLERANCE,
            atol=ABSOLUTE_TOLERANCE,
            equal_nan=True,
        ):
            return False
    return True


def _differences(trial: Trial, tried: Sequence[Trial]) -> list[Sentence]:
    """In what the results differ: by a known mistake, by properties, or else by numbers."""
    for mistake in trial.exercise.mistakes:
        if _explains(mistake, tried):
            return [trial.about(mistake.ko, mistake.en)]
    not_finite = _not_finite(trial)
    if not_finite is not None:
        return [not_finite]

    found = []
    for look in trial.exercise.properties:
        sentence = look(trial.inputs, trial.answer.results, trial.right)
        if sentence is not None:
            found.append(trial.about(sentence.ko, sentence.en))
    return found or [_largest_difference(trial)]


def _explains(mistake: Mistake, tried: Sequence[Trial]) -> bool:
    """Whether a mistake gives the student's results, wherever these can be compared."""
    explained = 0
    for trial in tried:
        if not trial.is_comparable:
            continue
        try:
            wrong = results_of(mistake.function, trial.inputs)
        except (ValueError, IndexError):  # inputs of these shapes do not allow this mistake
            continue
        if not _agree(trial.answer.results, wrong):
            return False
        explained += not _agree(wrong, trial.right)
    return explained > 0


def _largest_difference(trial: Trial) -> Sentence:
    """Where the first wrong result differs most."""
    for name, ours, theirs in zip(
        trial.exercise.returns, trial.answer.results, trial.right, strict=True
    ):
        if _agree([ours], [theirs]):
            continue
        distance = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        place = np.unravel_index(int(distance.argmax()), distance.shape)
        index = [int(number) for number in place]
        got, wanted = _shown(ours[place]), _shown(theirs[place])
        return trial.about(
            f"{name}{index}의 값이 {got}인데, 기준 구현의 값은 {wanted}입니다.",
            f"{name}{index} is {got}, where the reference has {wanted}.",
        )
    raise AssertionError("the results agree")


def _shown(number: Any) -> str:
    """A number of a result: words and masks are whole numbers."""
    if np.asarray(number).dtype.kind == "f":
        return f"{float(number):.4f}"
    return str(int(number))
