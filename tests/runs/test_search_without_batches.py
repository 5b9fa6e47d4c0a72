"""Searches whose points start as soon as a worker is free, with made objectives and durations."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence

import pytest
from optuna.pruners import MedianPruner
from optuna.trial import TrialState

from attnlab.runs.places import Batches, Numbered, OneByOne, Places
from attnlab.runs.search import VALUES
from made_search import Job, Leader, made_quality


class MadePlaces:
    """Points that take made times, and end in the order of these.

    now: the time so far.
    most: the points that ran at once.
    """

    def __init__(self, leader: Leader, duration: Callable[[list[str]], float]) -> None:
        self._leader, self._duration = leader, duration
        self._numbers = itertools.count()
        self._running: list[tuple[float, int, list[str]]] = []
        self.now, self.most = 0.0, 0
        self.started: list[list[str]] = []

    def start(self, points: Sequence[list[str]]) -> list[int]:
        numbers = list(itertools.islice(self._numbers, len(points)))
        for number, point in zip(numbers, points, strict=True):
            heapq.heappush(self._running, (self.now + self._duration(point), number, point))
        self.started += points
        self.most = max(self.most, len(self._running))
        return numbers

    def ended(self) -> Mapping[int, Job]:
        self.now, number, point = heapq.heappop(self._running)
        return {number: Job(self._leader.objective(point))}


class TimedBatches(Batches):
    """The same points in batches, which take as long as their slowest point."""

    def __init__(self, leader: Leader, duration: Callable[[list[str]], float]) -> None:
        super().__init__(self._made)
        self._leader, self._duration = leader, duration
        self.now = 0.0

    def _made(self, points: list[list[str]]) -> list[Job]:
        self.now += max(map(self._duration, points))
        return self._leader.launch(points)


def run(leader: Leader, places: Places) -> None:
    for _ in leader.search.run(places):
        pass


def same_for_all(point: list[str]) -> float:
    return 1.0


def slow_with_a(point: list[str]) -> float:
    return 10.0 if "kind=a" in point else 1.0


def last_seed_first(point: list[str]) -> float:
    return {"seed=1": 3.0, "seed=2": 2.0, "seed=3": 1.0}[point[-1]]


def test_free_worker_does_not_wait_for_the_slowest_point() -> None:
    one_by_one = Leader(trials=12, seeds=1, workers=3, sampler="random")
    places = MadePlaces(one_by_one, slow_with_a)
    run(one_by_one, places)
    assert places.most == 3
    in_batches = Leader(trials=12, seeds=1, workers=3, sampler="random")
    batches = TimedBatches(in_batches, slow_with_a)
    run(in_batches, batches)
    # The same settings, for these are drawn by chance.
    assert sorted(places.started) == sorted(in_batches.points)
    work = sum(map(slow_with_a, places.started))
    assert work / 3 <= places.now <= work / 3 + 10
    assert places.now < 0.8 * batches.now


def test_values_stand_in_the_order_of_the_seeds_whichever_ended_first() -> None:
    leader = Leader(trials=3, workers=3)
    run(leader, MadePlaces(leader, last_seed_first))
    assert leader.states() == [TrialState.COMPLETE] * 3
    for trial in leader.trials.study.trials:
        x = trial.params["x"]
        assert trial.user_attrs[VALUES] == [[x + 0.3], [x], [x - 0.3]]
        assert trial.value == pytest.approx(x)


def test_workers_of_equal_speed_have_the_points_of_batches() -> None:
    leader, in_batches = (Leader(trials=5, workers=3, sampler="random") for _ in range(2))
    places = MadePlaces(leader, same_for_all)
    run(leader, places)
    assert places.started == in_batches.run().points


def test_trial_that_is_given_up_ignores_its_seed_under_way() -> None:
    pruner = MedianPruner(n_startup_trials=2)
    leader = Leader(trials=6, workers=8, pruner=pruner, sampler="random")
    places = MadePlaces(leader, last_seed_first)
    run(leader, places)
    assert len(leader.trials.counted()) == 6
    assert set(leader.states()) <= {TrialState.COMPLETE, TrialState.PRUNED}
    pruned = [trial for trial in leader.trials.study.trials if trial.state == TrialState.PRUNED]
    assert any(len(trial.user_attrs[VALUES]) < 3 for trial in pruned)
    # Some seeds were trained whose trial was over before they ended.
    values = sum(len(trial.user_attrs[VALUES]) for trial in leader.trials.study.trials)
    assert len(places.started) > values


def test_failed_trial_ignores_its_other_seeds_and_the_search_goes_on() -> None:
    def fails_with_seed_3(point: list[str]) -> object:
        is_bad = "kind=a" in point and point[-1] == "seed=3"
        return ValueError("diverged") if is_bad else made_quality(point)

    leader = Leader(trials=6, workers=3, objective=fails_with_seed_3, sampler="random")
    run(leader, MadePlaces(leader, last_seed_first))
    for trial in leader.trials.study.trials:
        is_bad = trial.params["kind"] == "a"
        assert trial.state == (TrialState.FAIL if is_bad else TrialState.COMPLETE)


def test_search_that_fails_lets_the_points_end_that_run() -> None:
    calls = itertools.count()

    def second_fails(point: list[str]) -> object:
        return ValueError("diverged") if next(calls) == 1 else made_quality(point)

    leader = Leader(trials=9, seeds=1, workers=3, objective=second_fails, max_failure_rate=0.0)
    places = MadePlaces(leader, same_for_all)
    with pytest.raises(ValueError, match="diverged"):
        run(leader, places)
    # Three at the start, one in the place of the first; no other after the failure.
    assert len(places.started) == 4
    states = leader.states()
    assert states.count(TrialState.COMPLETE) == 3
    assert states.count(TrialState.FAIL) == 1
    assert len(states) == 4


def test_launcher_is_given_each_point_alone_in_a_thread_of_its_own() -> None:
    may_end = {number: threading.Event() for number in (7, 8)}
    launched: list[tuple[list[list[str]], int]] = []

    def launch(points: list[list[str]], number: int) -> list[Job]:
        launched.append((points, number))
        assert may_end[number].wait(10)
        return [Job(float(number))]

    places = Numbered(OneByOne(launch), take_numbers=lambda points: 7)
    assert list(places.start([["x=1"], ["x=2"]])) == [7, 8]
    may_end[8].set()
    ended = places.ended()
    assert {number: job.return_value for number, job in ended.items()} == {8: 8.0}
    may_end[7].set()
    assert list(places.ended()) == [7]
    assert sorted(launched, key=lambda each: each[1]) == [([["x=1"]], 7), ([["x=2"]], 8)]


def test_launcher_that_raises_fails_the_point_alone() -> None:
    def launch(points: list[list[str]], number: int) -> list[Job]:
        raise MemoryError("a worker was killed")

    launcher = OneByOne(launch)
    launcher.submit({0: ["x=1"]})
    (job,) = launcher.ended().values()
    with pytest.raises(MemoryError, match="a worker was killed"):
        _ = job.return_value
