"""A search over seeds: trials of which each is a point, trained with several seeds.

The value of a trial is the mean over its seeds. With one objective each seed is reported as soon as
it is known, and a pruner may give the trial up after any of them.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optuna.pruners import NopPruner
from optuna.trial import FrozenTrial, Trial, TrialState

from attnlab.errors import JobFailedError, show
from attnlab.runs.places import Places, Returned
from attnlab.runs.search_result import FoundSetting, SearchResult, columns
from attnlab.runs.search_space import SearchSpace
from attnlab.runs.search_storage import Trials

# Of a trial, in the storage: a row of objectives for each seed.
VALUES = "values by seed"


@dataclass
class OpenTrial:
    """A trial that is not finished.

    rows: the objectives of the seeds so far, by the seeds' places in the list of all.
    """

    trial: Trial
    overrides: list[str]
    rows: dict[int, list[float]] = field(default_factory=dict)

    @property
    def rows_of_seeds(self) -> list[list[float]]:
        """The rows so far, in the order of the seeds."""
        return [self.rows[seed] for seed in sorted(self.rows)]


@dataclass(frozen=True)
class Point:
    """A trial with one of its seeds.

    seed: its place in the list of all seeds.
    """

    of: OpenTrial
    seed: int
    overrides: list[str]


def seed_overrides(seeds: int, first: int) -> list[list[str]]:
    """The overrides of each training of a trial: `seed=1`, `seed=2` and so on.

    One training has the seed that the experiment has.

    first: the seed of the experiment.
    """
    if seeds == 1:
        return [[]]
    return [[f"seed={seed}"] for seed in range(first, first + seeds)]


class Search:
    """A search, as one of its leaders runs it.

    seeds: the overrides of each seed of a trial, such as `[["seed=1"], ["seed=2"]]`.
    workers: points that run at a time.
    max_failure_rate: the search ends where more of the last points failed than this share of the
        workers; the last ones are as many as there are workers.
    """

    def __init__(
        self,
        trials: Trials,
        space: SearchSpace,
        seeds: Sequence[Sequence[str]],
        workers: int,
        max_failure_rate: float,
    ) -> None:
        self._trials, self._study = trials, trials.study
        self._space, self._seeds = space, seeds
        self._workers, self._max_failure_rate = workers, max_failure_rate
        self._has_one_objective = len(self._study.directions) == 1
        self._prunes = self._has_one_objective and not isinstance(self._study.pruner, NopPruner)
        self._open: dict[int, OpenTrial] = {}
        self._running: dict[int, Point] = {}
        self._last_failures: deque[Exception | None] = deque(maxlen=workers)

    def run(self, places: Places) -> Iterator[None]:
        """Train points until there are as many trials as wanted; yields when some have ended.

        What this leader leaves open, since it is stopped, is queued again for others.

        Raises what a job raised where too many fail, once all that run have ended.
        """
        failure: Exception | None = None
        try:
            with self._trials.at_work(self._open):
                self._start_next_points(places)
                while self._running:
                    self._take(places.ended())
                    yield
                    failure = failure or self._too_many_failures()
                    if failure is None:
                        self._start_next_points(places)
            if failure is not None:
                raise failure
        finally:
            for each in self._open.values():
                self._trials.give_back(each.trial)

    def _start_next_points(self, places: Places) -> None:
        points = self._next_points()
        if points:
            numbers = places.start([point.overrides for point in points])
            self._running |= dict(zip(numbers, points, strict=True))

    def _next_points(self) -> list[Point]:
        """The points for all places that are free; none when the search is over.

        With a pruner, each open trial has its next seed, then new trials have their first ones;
        places that are still free take further seeds, which a pruner may make needless. Without a
        pruner a trial has all of its seeds at once, so that the sampler knows it sooner.
        """
        at_once = 1 if self._prunes else len(self._seeds)
        points: list[Point] = []
        for each in self._open.values():
            points += self._points_of(each, points, at_once)
        while self._free_places(points) > 0:
            new = self._ask(may_wait=not points and not self._running)
            if new is None:
                break
            points += self._points_of(new, points, at_once)
        for each in self._open.values():
            points += self._points_of(each, points, len(self._seeds))
        return points

    def _free_places(self, points: Sequence[Point]) -> int:
        """The places that are left beside the points that run, and those about to start."""
        return self._workers - len(self._running) - len(points)

    def _points_of(self, each: OpenTrial, points: Sequence[Point], at_once: int) -> list[Point]:
        """The next seeds of a trial: as many as there are places, and may run at once."""
        all_points = [*self._running.values(), *points]
        under_way = sum(point.of is each for point in all_points)
        count = max(0, min(at_once - under_way, self._free_places(points)))
        first = len(each.rows) + under_way
        next_seeds = range(len(self._seeds))[first : first + count]
        return [Point(each, seed, [*each.overrides, *self._seeds[seed]]) for seed in next_seeds]

    def _ask(self, may_wait: bool) -> OpenTrial | None:
        """A new trial; None where there are enough.

        may_wait: wait for the trials of other leaders that may be dead, to take them up.
        """
        trial = self._trials.ask(self._space.varied)
        if trial is None and may_wait:
            trial = self._trials.wait_for_a_dead_leaders(self._space.varied)
        if trial is None:
            return None
        opened = OpenTrial(trial, self._space.overrides(trial.params))
        self._open[trial.number] = opened
        return opened

    def _take(self, ended: Mapping[int, Returned]) -> None:
        """Report what points returned that have ended, and tell the trials that are over."""
        failed: set[int] = set()
        concerned: dict[int, None] = {}
        for number, job in ended.items():
            point = self._running.pop(number)
            trial = point.of.trial.number
            concerned[trial] = None
            try:
                row = self._row(job.return_value)
            except Exception as error:  # whatever the job raised
                self._last_failures.append(error)
                failed.add(trial)
                continue
            self._last_failures.append(None)
            # A trial that has failed or was given up may have had another seed under way.
            if trial in self._open and trial not in failed:
                self._report(point, row)

        for trial in concerned:
            if trial in self._open:
                self._tell(self._open[trial], trial in failed)

    def _too_many_failures(self) -> Exception | None:
        """What the first one raised of too many of the last points."""
        failures = [error for error in self._last_failures if error is not None]
        if len(failures) > self._max_failure_rate * self._workers:
            return failures[0]
        return None

    def _row(self, returned: Any) -> list[float]:
        """The objectives that a job returned.

        Raises JobFailedError where they are no numbers.
        """
        count = len(self._study.directions)
        given = [returned] if count == 1 else returned
        if _are_numbers(given, count):
            return [float(each) for each in given]
        wanted = "a number" if count == 1 else f"{count} numbers"
        raise JobFailedError(
            f"sweep.objectives: a point returned {show(returned)} and not {wanted}, so its trial "
            "failed; training must validate at least once"
        )

    def _report(self, point: Point, row: list[float]) -> None:
        each = point.of
        each.rows[point.seed] = row
        each.trial.set_user_attr(VALUES, each.rows_of_seeds)
        if self._has_one_objective:
            each.trial.report(row[0], step=len(each.rows))

    def _tell(self, each: OpenTrial, is_failed: bool) -> None:
        """Tell the study a trial that is over."""
        number = each.trial.number
        if is_failed:
            self._study.tell(each.trial, state=TrialState.FAIL)
        elif len(each.rows) == len(self._seeds):
            means = [statistics.fmean(values) for values in columns(each.rows_of_seeds)]
            self._study.tell(each.trial, means)
        elif self._prunes and each.trial.should_prune():
            self._study.tell(each.trial, state=TrialState.PRUNED)
        else:
            return
        del self._open[number]


def _are_numbers(given: Any, count: int) -> bool:
    if not isinstance(given, list | tuple) or len(given) != count:
        return False
    return all(isinstance(each, int | float) and not math.isnan(each) for each in given)


def result_of(
    trials: Trials, space: SearchSpace, objectives: list[str], seeds: int
) -> SearchResult:
    """What a study has found so far."""
    study = trials.study
    counted = trials.counted()
    states = [each.state for each in counted]
    pruned = [each for each in counted if each.state == TrialState.PRUNED]
    best: list[FrozenTrial] = []
    if TrialState.COMPLETE in states:
        best = study.best_trials
    # Of trials with equal values the first one; two objectives have several that are best.
    if len(study.directions) == 1:
        best = best[:1]
    return SearchResult(
        study=study.study_name,
        objectives=objectives,
        seeds=seeds,
        complete=states.count(TrialState.COMPLETE),
        pruned=len(pruned),
        failed=states.count(TrialState.FAIL),
        best=[_found(each, space) for each in best],
        spared=sum(seeds - len(each.user_attrs[VALUES]) for each in pruned),
    )


def _found(trial: FrozenTrial, space: SearchSpace) -> FoundSetting:
    overrides = space.overrides(trial.params)[: len(space.varied)]
    rows: list[list[float]] = trial.user_attrs[VALUES]
    return FoundSetting(trial.number, overrides, columns(rows))


def results_of_hydra(result: SearchResult) -> Mapping[str, Any]:
    """The keys of Hydra's `optimization_results.yaml`, and those that seeds add."""
    if len(result.objectives) == 1:
        found: dict[str, Any] = {"name": "optuna", "best_evaluated_params": {}, "best_value": None}
        for best in result.best:
            found = {
                "name": "optuna",
                "best_params": dict(text.split("=", 1) for text in best.overrides),
                "best_value": best.means[0],
                "spread": best.spreads[0],
                "seeds": result.seeds,
                "values": best.values[0],
            }
        return found
    solutions = []
    for best in result.best:
        params = dict(text.split("=", 1) for text in best.overrides)
        solutions.append({"params": params, "values": best.means})
    return {"name": "optuna", "solutions": solutions}
