"""Exercises in which a student draws a conclusion from a sweep of several seeds.

The file is a YAML mapping: which sweep, which metric, which two systems, and what follows. It is
right if the statistics of the seeds support it: at least three seeds of each system, and for a
difference a 95 % interval that excludes 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from attnlab.course.sentence import RefusalError, Sentence
from attnlab.errors import show
from attnlab.evaluation.differences import independent_difference
from attnlab.evaluation.measures import Measure
from attnlab.report.run_sources import runs_of_sweep
from attnlab.report.systems import System, systems_of
from attnlab.runs.sweep_record import LAST, find_sweep

FEWEST_SEEDS = 3
Verdict = Literal["better", "worse", "undecided"]
VERDICTS: tuple[str, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Conclusion:
    """What a student says of a sweep.

    system, than: the two that are compared, by the names that compare.py prints.
    metric: a metric of the test split.
    conclusion: system is `better` or `worse` than the other, or `undecided`.
    sweep: as compare.py takes it. runs: the folder of the runs.
    """

    system: str
    than: str
    metric: str
    conclusion: Verdict
    sweep: str = LAST
    runs: str = "runs"


def read_conclusion(values: Mapping[str, Any]) -> Conclusion:
    """Raises RefusalError with every problem of the file's fields."""
    names = [field.name for field in fields(Conclusion)]
    all_names = ", ".join(names)
    problems = []
    for name in ("system", "than", "metric", "conclusion"):
        if values.get(name) is None:
            problems.append(
                Sentence(
                    f"{name} 항목이 없습니다. 쓸 수 있는 항목: {all_names}.",
                    f"{name} is missing; the file has {all_names}.",
                )
            )
    for name in values:
        if name not in names:
            problems.append(
                Sentence(
                    f"{name}: 모르는 항목입니다. 쓸 수 있는 항목: {all_names}.",
                    f"{name} is unknown; the file has {all_names}.",
                )
            )
    verdict = values.get("conclusion")
    if verdict is not None and verdict not in VERDICTS:
        choices, got = ", ".join(VERDICTS), show(verdict)
        problems.append(
            Sentence(
                f"conclusion: {choices} 가운데 하나여야 하는데 {got}입니다.",
                f"conclusion must be one of {choices}, got {got}.",
            )
        )
    if not problems and values["system"] == values["than"]:
        problems.append(
            Sentence(
                "system과 than이 같습니다. 서로 다른 두 시스템을 비교해야 합니다.",
                "system and than are the same; a conclusion compares two systems.",
            )
        )
    if problems:
        raise RefusalError(problems)
    texts: dict[str, Any] = {name: str(value) for name, value in values.items()}
    return Conclusion(**texts)


def grade_conclusion(conclusion: Conclusion, folder: Path) -> list[Sentence]:
    """Why the sweep does not support the conclusion; nothing where it does.

    folder: that of the student's file, which `runs` is relative to.

    Raises RefusalError where a system is not in the sweep, ExperimentError where the sweep or the
    metric is not there.
    """
    runs_folder = folder / conclusion.runs
    compared = runs_of_sweep(find_sweep(runs_folder, conclusion.sweep), runs_folder)
    systems = {system.name: system for system in systems_of(compared.runs)}
    of_runs = [(run.name, run.measured) for run in compared.runs]
    measures = compared.measures
    measure = measures.named(measures.chosen(conclusion.metric, of_runs))
    first = _system(systems, conclusion.system, "system")
    second = _system(systems, conclusion.than, "than")

    too_few = _too_few_seeds((first, second), measure)
    if too_few:
        return too_few
    difference = interval_of(first.measured(measure.name), second.measured(measure.name))
    if verdict_on(difference, measure) == conclusion.conclusion:
        return []
    return [_refusal(difference, measure, conclusion)]


@dataclass(frozen=True)
class Interval:
    """A difference of means with its 95 % interval, which has no ends where no seed scatters."""

    value: float
    low: float | None
    high: float | None

    def shown(self, measure: Measure) -> str:
        """`+1.2 (-0.3 to +2.7)`."""
        value = measure.shown(self.value, signed=True)
        if self.low is None or self.high is None:
            return value
        low, high = (measure.shown(end, signed=True) for end in (self.low, self.high))
        return f"{value} ({low} to {high})"


def interval_of(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """The difference of two means over seeds, as the studies measure it."""
    found = independent_difference(ours, theirs)
    if found is None:
        return Interval(sum(ours) / len(ours) - sum(theirs) / len(theirs), None, None)
    return Interval(found.value, *found.interval(0.95))


def verdict_on(difference: Interval, measure: Measure) -> Verdict:
    """What an interval says; it lies on one side of 0, or says nothing."""
    if difference.low is None or difference.high is None:
        return "undecided"
    ends = sorted((measure.sign * difference.low, measure.sign * difference.high))
    if ends[0] > 0:
        return "better"
    if ends[1] < 0:
        return "worse"
    return "undecided"


def _system(systems: Mapping[str, System], name: str, field: str) -> System:
    if name not in systems:
        known, got = ", ".join(map(show, systems)), show(name)
        raise RefusalError(
            [
                Sentence(
                    f"{field}: 이 실험의 시스템({known}) 가운데 하나여야 하는데 {got}입니다.",
                    f"{field} must be one of the sweep's systems, {known}, got {got}.",
                )
            ]
        )
    return systems[name]


def _too_few_seeds(systems: Sequence[System], measure: Measure) -> list[Sentence]:
    found = []
    for system in systems:
        seeds = len(system.measured(measure.name))
        if seeds < FEWEST_SEEDS:
            found.append(
                Sentence(
                    f"{system.name}의 시드가 {seeds}개뿐입니다. 시드가 {FEWEST_SEEDS}개보다 적으면 "
                    "차이가 우연인지 구별할 수 없습니다.",
                    f"{system.name} has {seeds} seed(s); with fewer than {FEWEST_SEEDS} nothing "
                    "tells a difference from luck.",
                )
            )
    return found


def _refusal(difference: Interval, measure: Measure, conclusion: Conclusion) -> Sentence:
    shown = difference.shown(measure)
    in_korean = shown.replace(" to ", " ~ ")
    ko = f"{measure.label}의 차이(평균과 95 % 신뢰 구간)는 {in_korean}입니다. "
    en = f"the difference in {measure.label} is {shown} (mean and 95 % interval); "
    if difference.low is None:
        ko += "시드마다 값이 같아 얼마나 흔들리는지 알 수 없습니다. 아무 결론도 내릴 수 없습니다."
        en += "the seeds do not scatter, so how far luck would move them is unknown."
    elif verdict_on(difference, measure) == "undecided":
        ko += "신뢰 구간에 0이 들어 있으므로, 이 시드들로는 어느 쪽이 낫다고 말할 수 없습니다."
        en += "the interval contains 0, so these seeds do not say which is better."
    elif conclusion.conclusion == "undecided":
        ko += "신뢰 구간에 0이 들어 있지 않으므로, 이 시드들로 결론을 내릴 수 있습니다."
        en += "the interval excludes 0: these seeds are enough for a conclusion."
    else:
        ko += "결론의 방향이 반대입니다."
        en += "the conclusion points the other way."
    return Sentence(ko, en)
