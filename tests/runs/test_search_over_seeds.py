"""Searches over seeds with a made objective: means, pruning, several leaders, and going on."""

from __future__ import annotations

import itertools
import sqlite3
import statistics
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from hydra.utils import instantiate
from optuna.pruners import MedianPruner, NopPruner
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from attnlab.errors import ExperimentError
from attnlab.experiment.hydra_config import compose_config
from attnlab.runs import search_storage
from attnlab.runs.places import Batches
from attnlab.runs.search import VALUES, Search, result_of, results_of_hydra
from attnlab.runs.search_parts import named_pruner, prepared_sampler, wanted_trials
from attnlab.runs.search_storage import Trials, open_storage, open_study
from made_search import SPACE, Job, Leader, made_quality, space_of

SAMPLERS = ("tpe", "random", "gp", "cmaes", "nsgaii", "nsgaiii", "qmc")


def test_value_of_a_trial_is_the_mean_over_its_seeds() -> None:
    leader = Leader(trials=4).run()
    assert len(leader.points) == 12
    for number, trial in enumerate(leader.trials.study.trials):
        of_trial = leader.points[3 * number : 3 * number + 3]
        assert [point[-1] for point in of_trial] == ["seed=1", "seed=2", "seed=3"]
        assert all("width=8" in point for point in of_trial)
        values = [float(str(made_quality(point))) for point in of_trial]
        assert trial.value == pytest.approx(statistics.fmean(values))
        assert trial.intermediate_values == dict(enumerate(values, start=1))


def test_best_setting_is_the_best_over_seeds_and_not_that_of_a_lucky_one() -> None:
    def lucky_at_low_values(point: list[str]) -> object:
        chosen = dict(text.split("=") for text in point)
        x = float(chosen["x"])
        return 10.0 - 20 * (chosen["seed"] != "1") if x < 0.5 else x

    leader = Leader(trials=12, objective=lucky_at_low_values, sampler="random").run()
    found = result_of(leader.trials, leader.space, ["bleu"], 3)
    (best,) = found.best
    xs = [trial.params["x"] for trial in leader.trials.study.trials]
    assert min(xs) < 0.5
    assert best.overrides[0] == f"x={max(xs)}"
    assert best.values == [[max(xs)] * 3]
    assert found.trials_line == "12 trials: 12 complete, 0 pruned, 0 failed"


def test_spread_of_the_best_setting_is_that_of_its_seeds() -> None:
    leader = Leader(trials=3).run()
    found = result_of(leader.trials, leader.space, ["bleu"], 3)
    (best,) = found.best
    assert best.spreads[0] == pytest.approx(0.3)
    (line,) = found.lines()
    assert line.startswith(f"bleu {best.means[0]:.4g} ± 0.3 (3 seeds): x=")
    metrics = found.metrics()
    assert metrics["search/best_mean"] == best.means[0]
    assert metrics["search/best_seeds"] == 3
    of_hydra = results_of_hydra(found)
    assert of_hydra["best_value"] == best.means[0]
    assert of_hydra["best_params"]["x"] == str(leader.trials.study.best_params["x"])


def test_one_seed_adds_no_override_and_has_no_spread() -> None:
    leader = Leader(trials=2, seeds=1).run()
    assert not any(text.startswith("seed=") for point in leader.points for text in point)
    found = result_of(leader.trials, leader.space, ["bleu"], 1)
    assert found.best[0].spreads == [None]
    assert "search/best_spread" not in found.metrics()


def test_pruned_trial_does_not_train_its_other_seeds() -> None:
    pruner = MedianPruner(n_startup_trials=2)
    leader = Leader(trials=10, pruner=pruner, sampler="random").run()
    states = leader.states()
    assert TrialState.PRUNED in states
    assert set(states) == {TrialState.COMPLETE, TrialState.PRUNED}
    trained = [len(trial.user_attrs[VALUES]) for trial in leader.trials.study.trials]
    for state, seeds in zip(states, trained, strict=True):
        assert (seeds == 3) == (state == TrialState.COMPLETE)
    assert len(leader.points) == sum(trained) < 30
    found = result_of(leader.trials, leader.space, ["bleu"], 3)
    assert found.spared == 30 - len(leader.points)


def test_without_a_pruner_a_trial_has_its_seeds_at_once() -> None:
    leader = Leader(trials=2, workers=3).run()
    assert [len(batch) for batch in leader.batches] == [3, 3]
    assert [point[-1] for point in leader.batches[0]] == ["seed=1", "seed=2", "seed=3"]
    assert len({point[0] for point in leader.batches[0]}) == 1


def test_with_a_pruner_a_batch_has_first_seeds_of_new_trials() -> None:
    leader = Leader(trials=4, workers=3, pruner=MedianPruner()).run()
    first = leader.batches[0]
    assert [point[-1] for point in first] == ["seed=1"] * 3
    assert len({point[0] for point in first}) == 3
    assert max(map(len, leader.batches)) == 3
    assert len(leader.points) == 12
    # At the end no new trial is left for a free worker, and so it takes a further seed.
    assert [point[-1] for point in leader.batches[-1]] != ["seed=3"]


@pytest.mark.parametrize("sampler", ["tpe", "random", "gp", "cmaes", "nsgaii", "qmc"])
def test_repeated_search_chooses_the_same_points(sampler: str) -> None:
    first, again, other = (Leader(trials=13, seed=seed, sampler=sampler) for seed in (1, 1, 2))
    assert first.run().points == again.run().points
    assert other.run().points != first.points


def test_more_trials_begin_with_the_same_ones() -> None:
    few, more = Leader(trials=11).run(), Leader(trials=14).run()
    assert more.points[: len(few.points)] == few.points
    assert len(more.points) == 42


def test_failed_point_fails_its_trial_and_the_others_go_on() -> None:
    def fails_once(point: list[str]) -> object:
        is_bad = "kind=a" in point and point[-1] == "seed=2"
        return ValueError("diverged") if is_bad else made_quality(point)

    leader = Leader(trials=8, objective=fails_once, sampler="random").run()
    for trial in leader.trials.study.trials:
        fails = trial.params["kind"] == "a"
        assert (trial.state == TrialState.FAIL) == fails
    # The third seed of a trial that has failed is not trained.
    assert not [point for point in leader.points if "kind=a" in point and point[-1] == "seed=3"]
    assert len(leader.states()) == 8


@pytest.mark.parametrize("value", [None, float("nan"), "text", (1.0, 2.0)])
def test_point_without_a_number_fails_its_trial(value: object) -> None:
    leader = Leader(trials=1, objective=lambda point: value, max_failure_rate=0.0)
    with pytest.raises(ExperimentError, match="and not a number"):
        leader.run()
    assert leader.states() == [TrialState.FAIL]


def test_two_objectives_have_means_and_several_best_settings() -> None:
    def quality_and_cost(point: list[str]) -> object:
        quality = float(str(made_quality(point)))
        return (quality, quality**2)

    directions = ("maximize", "minimize")
    leader = Leader(trials=5, objective=quality_and_cost, directions=directions).run()
    found = result_of(leader.trials, leader.space, ["bleu", "training_cpu_seconds"], 3)
    assert len(found.best) > 1
    for setting in found.best:
        assert setting.means == leader.trials.study.trials[setting.trial].values
    assert found.metrics() == {}
    assert len(results_of_hydra(found)["solutions"]) == len(found.best)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'search.db'}"


def test_study_in_a_database_goes_on_and_counts_its_trials(database: str) -> None:
    whole = Leader(trials=12).run()
    first = Leader(database, trials=5).run()
    again = Leader(database, trials=5).run()
    assert again.points == []
    rest = Leader(database, trials=12).run()
    # Numbers by chance go on as if there had been no pause.
    assert first.points + rest.points == whole.points


def test_two_leaders_share_the_trials_and_choose_different_points(database: str) -> None:
    one = Leader(database, trials=6, sampler="random")
    other = Leader(database, trials=6, sampler="random")
    runs = [leader.in_batches() for leader in (one, other)]
    # In turn, so that each has trials open while the other asks.
    for _ in itertools.zip_longest(*runs):
        pass
    assert one.states() == [TrialState.COMPLETE] * 6
    assert {point[0] for point in one.points}.isdisjoint(point[0] for point in other.points)
    assert len(one.points) + len(other.points) == 18
    assert min(len(one.points), len(other.points)) >= 6
    alone = Leader(trials=6, sampler="random").run()
    assert sorted(one.points + other.points) == sorted(alone.points)


def test_trial_that_two_leaders_ask_for_at_once_is_one_too_many(database: str) -> None:
    one, other = Leader(database, trials=1), Leader(database, trials=1)
    asked = one.trials.study.ask(dict(one.space.varied))
    assert asked.number == 0
    counted = other.trials.counted
    # What the other leader saw before the first one had asked.
    answers = iter([[]])
    other.trials.counted = lambda: next(answers, None) or counted()  # type: ignore[method-assign]
    assert other.trials.ask(other.space.varied) is None
    one.trials.study.tell(asked, 1.0)
    assert len(one.trials.counted()) == 1


class Stopped(BaseException):
    """A signal that stops a leader."""


def stopping_at(count: int) -> Callable[[list[str]], object]:
    """An objective whose process is stopped at so many points."""
    calls = itertools.count(1)

    def objective(point: list[str]) -> object:
        if next(calls) == count:
            raise Stopped
        return made_quality(point)

    return objective


def test_stopped_leader_queues_its_trial_again(database: str) -> None:
    stopped = Leader(database, trials=3, objective=stopping_at(5))
    with pytest.raises(Stopped):
        stopped.run()
    rest = Leader(database, trials=3).run()
    # The second trial has all of its seeds, and its own setting, again.
    assert [point[0] for point in rest.points[:3]] == [stopped.points[3][0]] * 3
    assert len(rest.points) == 6
    assert rest.states().count(TrialState.COMPLETE) == 3
    found = result_of(rest.trials, rest.space, ["bleu"], 3)
    assert (found.complete, found.failed) == (3, 0)


def test_trial_of_a_killed_leader_is_taken_up_after_a_while(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_storage, "HEARTBEAT_INTERVAL", 1)
    monkeypatch.setattr(search_storage, "GRACE_PERIOD", 2)
    killed = Leader(database, trials=2)
    lost = killed.trials.ask(killed.space.varied)  # and nobody hears of it again
    assert lost is not None
    rest = Leader(database, trials=2).run()
    assert rest.states() == [TrialState.FAIL, TrialState.COMPLETE, TrialState.COMPLETE]
    assert rest.trials.study.trials[2].params == lost.params
    assert len(rest.trials.counted()) == 2


def test_trial_of_a_leader_that_lives_is_left_to_it(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_storage, "HEARTBEAT_INTERVAL", 1)
    monkeypatch.setattr(search_storage, "GRACE_PERIOD", 2)
    slow = Leader(database, trials=1)
    trial = slow.trials.ask(slow.space.varied)
    assert trial is not None
    with slow.trials.at_work({trial.number: trial}):
        assert Leader(database, trials=1).run().points == []
    assert slow.states() == [TrialState.RUNNING]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"seeds": 2}, "their seeds is 3, and here 2"),
        ({"directions": ("minimize",)}, "their directions is"),
    ],
)
def test_study_with_other_trials_is_refused(database: str, other: dict, sentence: str) -> None:
    Leader(database, trials=1).run()
    with pytest.raises(ExperimentError, match=r"sweep\.study: the study made in") as no:
        Leader(database, **other)
    assert sentence in str(no.value)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("nowhere", "must be the address of a database"),
        ("sqlite://", "must name a file"),
        ("sqlite:////nowhere/at/all/search.db", "its folder does not exist"),
        ("postgresql+psycopg2://me:secret@127.0.0.1:1/none", "cannot be used: .*refused"),
        ("oracle://host/name", "cannot be used: it needs the Python package"),
    ],
)
def test_storage_that_cannot_be_used_is_refused(address: str, sentence: str) -> None:
    with pytest.raises(ExperimentError, match=rf"^sweep\.storage.*{sentence}") as refused:
        open_storage(address)
    assert "secret" not in str(refused.value)


def test_database_of_mlflow_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        database.execute("CREATE TABLE alembic_version (version_num TEXT)")
    before = (tmp_path / "mlflow.db").read_bytes()
    with pytest.raises(ExperimentError, match="holds the tables of another program"):
        open_storage(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert (tmp_path / "mlflow.db").read_bytes() == before


@pytest.mark.parametrize(
    "chosen",
    [
        ("sweep.sampler=grid",),
        ("hydra/sweeper/sampler=grid",),
        ("hydra/sweeper/sampler=grid", "hydra.sweeper.sampler.seed=null"),
    ],
    ids=" ".join,
)
def test_grid_has_each_point_once_and_no_more_trials(chosen: tuple[str, ...]) -> None:
    space = space_of("x=range(1,4)", "kind=a,b")
    given = instantiate(compose_config(["sweep=optuna", *chosen]).hydra.sweeper.sampler)
    wanted = wanted_trials(given, space, 20)
    assert wanted == 6
    kept = open_storage(None)
    study = open_study(kept, "g", prepared_sampler(given, space), NopPruner(), ["maximize"], {})
    launched = []

    def launch(points: list[list[str]]) -> list[Job]:
        launched.extend(points)
        return [Job(1.0) for _ in points]

    for _ in Search(Trials(study, kept, wanted), space, [[]], 2, 1.0).run(Batches(launch)):
        pass
    points = [[f"x={x}", f"kind={kind}"] for x in (1, 2, 3) for kind in "ab"]
    assert sorted(launched) == sorted(points)


@pytest.mark.parametrize(
    "chosen",
    [f"{key}={name}" for key in ("sweep.sampler", "hydra/sweeper/sampler") for name in SAMPLERS],
)
def test_each_sampler_of_the_config_is_made_and_follows_from_the_seed(chosen: str) -> None:
    space = space_of("x=interval(0,1)", "y=interval(0,1)")
    drawn = []
    for seed in (1, 1, 2):
        overrides = ["sweep=optuna", chosen, f"sweep.seed={seed}"]
        given = instantiate(compose_config(overrides).hydra.sweeper.sampler)
        study = optuna.create_study(sampler=prepared_sampler(given, space))
        asked = [study.ask(dict(space.varied)) for _ in range(2)]
        drawn.append([trial.params for trial in asked])
    assert drawn[0] == drawn[1] != drawn[2]


def test_sampler_that_is_given_whole_is_used_as_it_is() -> None:
    whole = RandomSampler(seed=1)
    assert prepared_sampler(whole, space_of(*SPACE)) is whole


@pytest.mark.parametrize(
    ("name", "seeds", "objectives", "kind"),
    [
        (None, 1, 1, "NopPruner"),
        (None, 3, 1, "MedianPruner"),
        (None, 3, 2, "NopPruner"),
        ("none", 3, 1, "NopPruner"),
        ("median", 3, 1, "MedianPruner"),
        ("percentile", 3, 1, "PercentilePruner"),
        ("wilcoxon", 3, 1, "WilcoxonPruner"),
    ],
)
def test_pruner_has_a_name(name: str | None, seeds: int, objectives: int, kind: str) -> None:
    assert type(named_pruner(name, seeds, objectives)).__name__ == kind
