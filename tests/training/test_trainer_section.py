"""Allowed arguments of Lightning's Trainer, and the metrics that a callback can monitor."""

from __future__ import annotations

import inspect

import pytest
import pytorch_lightning as pl

from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.training.extension_checks import check_extensions
from attnlab.training.trainer_section import (
    PASSED_ON,
    SET_BY_ATTNLAB,
    trainer_arguments,
    trainer_problems,
)

METRICS = {"validation/nll"}


def test_every_argument_of_lightnings_trainer_is_passed_on_or_has_a_setting_of_ours():
    arguments = set(inspect.signature(pl.Trainer).parameters)
    assert SET_BY_ATTNLAB.keys() | PASSED_ON.keys() == arguments
    assert not SET_BY_ATTNLAB.keys() & PASSED_ON.keys()


@pytest.mark.parametrize("name", sorted(SET_BY_ATTNLAB))
def test_argument_that_attnlab_sets_is_refused_with_its_own_setting(name):
    (problem,) = trainer_problems({name: None})
    assert problem == f"trainer.{name} is set by attnlab: {SET_BY_ATTNLAB[name]}; got null"


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (
            {"nosuch": 1},
            "trainer.nosuch is not a setting; trainer takes, of Lightning's Trainer: benchmark,",
        ),
        ({"profilr": "simple"}, "trainer.profilr is not a setting; did you mean profiler? "),
        (
            {"_target_": "pytorch_lightning.Trainer"},
            "trainer._target_: attnlab builds Lightning's Trainer itself",
        ),
        (
            {"profiler": "simpel"},
            "trainer.profiler must be one of simple, advanced, pytorch or null, got 'simpel'",
        ),
        (
            {"profiler": {"filename": "x"}},
            "trainer.profiler must be a Profiler (a mapping with _target_), got",
        ),
        (
            {
                "profiler": {
                    "_target_": "pytorch_lightning.profilers.SimpleProfiler",
                    "extendd": True,
                }
            },
            "trainer.profiler.extendd is not a setting; did you mean extended?",
        ),
        (
            {"deterministic": {"_target_": "x"}},
            "trainer.deterministic must be true or false or warn or null, got",
        ),
        (
            {"num_sanity_val_steps": -1},
            "trainer.num_sanity_val_steps must be a whole number of at least 0, got -1",
        ),
    ],
)
def test_wrong_trainer_section_is_refused_in_a_sentence(section, said):
    (problem,) = trainer_problems(section)
    assert problem.startswith(said)


def test_profiler_of_a_class_of_its_own_is_built():
    section = {
        "profiler": {"_target_": "pytorch_lightning.profilers.PyTorchProfiler", "row_limit": 5}
    }
    assert trainer_problems(section) == []
    assert isinstance(trainer_arguments(section)["profiler"], pl.profilers.PyTorchProfiler)


def callback(name: str, **settings: object) -> dict[str, object]:
    return {"_target_": f"pytorch_lightning.callbacks.{name}", **settings}


STOP = callback("EarlyStopping", monitor="validation/nll")


@pytest.mark.parametrize(
    ("callbacks", "said"),
    [
        (
            {"a": callback("EarlyStopping", monitor="val_nll")},
            "callbacks.a.monitor must be one of validation/nll, got",
        ),
        (
            {"a": callback("ModelCheckpoint", monitor="validation/nl")},
            "did you mean validation/nll?",
        ),
        (
            {"a": callback("RichProgressBar")},
            "callbacks.a: RichProgressBar does not fit into attnlab: ",
        ),
        (
            {"a": callback("TQDMProgressBar")},
            "callbacks.a: TQDMProgressBar does not fit into attnlab: ",
        ),
        ({"a": callback("BackboneFinetuning")}, "models have no backbone"),
        ({"a": callback("StochasticWeightAveraging", swa_lrs=0.1)}, "use training.average_decay"),
        ({"a": callback("Timer")}, "use training.max_minutes"),
        ({"a": callback("LearningRateFinder")}, "use training.optimizer.lr"),
        (
            {"a": STOP, "b": STOP},
            "trainer, callbacks and loggers do not go together: Found more than one stateful",
        ),
    ],
)
def test_callback_that_does_not_fit_is_refused_in_a_sentence(callbacks, said):
    with pytest.raises(ExperimentError) as caught:
        check_extensions({}, callbacks, {}, METRICS)
    (problem,) = caught.value.problems
    assert said in problem


class LogsMetrics(pl.Callback):
    """Some callback of a user's own."""

    def on_train_batch_end(self, trainer, pl_module, *args):
        self.log("mine", 1.0)


class LogsNothing(pl.Callback):
    def on_train_batch_end(self, trainer, pl_module, *args):
        print(trainer.global_step)


def test_monitor_of_a_metric_that_another_callback_may_log_is_accepted():
    mine = {"_target_": f"{LogsMetrics.__module__}.LogsMetrics"}
    check_extensions(
        {}, {"stop": callback("EarlyStopping", monitor="mine"), "mine": mine}, {}, METRICS
    )


def test_monitor_of_an_unknown_metric_beside_a_callback_that_logs_nothing_is_refused():
    mine = {"_target_": f"{LogsMetrics.__module__}.LogsNothing"}
    with pytest.raises(
        ExperimentError, match=r"callbacks.stop.monitor must be one of validation/nll, got 'mine'"
    ):
        check_extensions(
            {}, {"stop": callback("EarlyStopping", monitor="mine"), "mine": mine}, {}, METRICS
        )


@pytest.mark.parametrize("address", [None, "", "mlruns", "file:///tmp/mlruns"])
def test_mlflow_logger_without_an_address_is_refused(address, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    node = {"_target_": "pytorch_lightning.loggers.MLFlowLogger", "tracking_uri": address}
    with pytest.raises(
        ExperimentError,
        match=r"^loggers.m.tracking_uri must be the address of a server or a database",
    ):
        check_extensions({}, {}, {"m": node}, METRICS)


def monitored(*overrides: str) -> set[str]:
    experiment = compose(["data=copy", *overrides])
    bound = {"training": experiment.training, "model": experiment.model}
    return experiment.task.monitored(bound)


class KeepNames(pl.Callback):
    def on_train_end(self, trainer, pl_module):
        self.names = set(trainer.callback_metrics)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_metrics_that_can_be_monitored_are_those_that_a_training_has(train, smoothing):
    keep = KeepNames()
    train(callbacks=[keep], label_smoothing=smoothing)
    assert monitored(f"training.label_smoothing={smoothing}") == keep.names
