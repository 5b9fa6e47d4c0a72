"""Additions of a config to Lightning's Trainer, at the real command.

Invalid ones are refused before there are data, or a run in MLflow.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from entry_points import TINY, Command, mlflow_client, succeeded
from test_refusals import left, refused

LIGHTNING = "pytorch_lightning"
REFUSED = {
    "max_epochs": (
        ("+trainer.max_epochs=2",),
        "trainer.max_epochs is set by attnlab: use training.max_epochs; got 2",
    ),
    "fast_dev_run": (("+trainer.fast_dev_run=true",), "use debug=one_step; got true"),
    "limit_val_batches": (("+trainer.limit_val_batches=0",), "use training.limit_batches; got 0"),
    "unknown": (("+trainer.nosuch=1",), "trainer.nosuch is not a setting"),
    "target": (
        ("+trainer._target_=pytorch_lightning.Trainer",),
        "attnlab builds Lightning's Trainer itself",
    ),
    "profiler": (
        ("+trainer.profiler=simpel",),
        "trainer.profiler must be one of simple, advanced, pytorch or null",
    ),
    "plugins": (
        (f"+trainer.plugins._target_={LIGHTNING}.plugins.MixedPrecision",),
        "trainer.plugins is set by",
    ),
    "monitor": (
        (
            f"+callbacks.stop._target_={LIGHTNING}.callbacks.EarlyStopping",
            "+callbacks.stop.monitor=val_loss",
        ),
        "callbacks.stop.monitor must be one of train/gradient_norm,",
    ),
    "server": (
        (
            f"+loggers.m._target_={LIGHTNING}.loggers.MLFlowLogger",
            "+loggers.m.tracking_uri=http://localhost:9",
        ),
        "loggers.m.tracking_uri: nothing answers at http://localhost:9",
    ),
    "bar": (
        (f"+callbacks.bar._target_={LIGHTNING}.callbacks.RichProgressBar",),
        "shows a bar of its own",
    ),
    "logger": (
        (f"+loggers.m._target_={LIGHTNING}.loggers.MLFlowLogger",),
        "loggers.m.tracking_uri must be",
    ),
}


def refused_at_once(command: Command, folder: Path, *arguments: str, said: str) -> None:
    ended = command("train.py", *TINY, *arguments)
    refused(ended, said)
    assert left(folder) == []


@pytest.mark.parametrize(("overrides", "said"), REFUSED.values(), ids=REFUSED)
def test_wrong_addition_to_the_trainer_is_refused_before_data_and_runs(
    command: Command, folder: Path, overrides: tuple[str, ...], said: str
) -> None:
    refused_at_once(command, folder, *overrides, said=said)


def test_trainer_of_a_group_is_checked_as_the_section_is(command: Command, folder: Path) -> None:
    (folder / "theirs" / "trainer").mkdir(parents=True)
    (folder / "theirs" / "trainer" / "mine.yaml").write_text(
        "_target_: pytorch_lightning.Trainer\nmin_epochs: 1\n"
    )
    ended = command("train.py", "-cd", "theirs", *TINY, "+trainer=mine")
    refused(
        ended,
        "trainer._target_: attnlab builds",
        "trainer.min_epochs is set by attnlab: a training ends at",
    )
    assert not (folder / "runs" / "mlflow.db").exists()


@pytest.mark.usefixtures("database")
def test_training_that_is_too_short_to_average_leaves_no_run(
    command: Command, folder: Path
) -> None:
    ended = command("train.py", *TINY, "training.keep_best=2", "training.average_checkpoints=2")
    refused(ended, "training.average_checkpoints must be at most the number of validations")
    assert mlflow_client(folder).search_runs(["0", "1"]) == []


def test_profiler_of_a_class_of_its_own_reports(command: Command, tiny: tuple[str, ...]) -> None:
    profiler = f"+trainer.profiler._target_={LIGHTNING}.profilers.SimpleProfiler"
    ended = succeeded(command("train.py", *tiny, "chain=false", profiler))
    assert "Profiler Report" in ended.err


def test_training_that_a_callback_stops_before_a_validation_ends_as_any_other(
    command: Command, tiny: tuple[str, ...]
) -> None:
    stop = {
        "_target_": f"{LIGHTNING}.callbacks.EarlyStopping",
        "monitor": "train/token_nll",
        "check_on_train_epoch_end": "true",
        "stopping_threshold": "100",
    }
    chosen = [f"+callbacks.a.{name}={value}" for name, value in stop.items()]
    lengths = ("training.max_steps=40", "training.validate_every=30", "training.log_every=1")
    ended = succeeded(command("train.py", *tiny, "chain=false", *lengths, *chosen))
    assert "validation: " in ended.err


def test_validation_metric_at_the_end_of_an_epoch_without_a_validation_leaves_no_run(
    command: Command, tiny: tuple[str, ...]
) -> None:
    chosen = (
        f"+callbacks.a._target_={LIGHTNING}.callbacks.EarlyStopping",
        "+callbacks.a.monitor=validation/teacher_forced/token_nll",
        "+callbacks.a.check_on_train_epoch_end=true",
    )
    ended = command(
        "train.py", *tiny, "training.max_steps=40", "training.validate_every=30", *chosen
    )
    refused(
        ended,
        "callbacks.a.check_on_train_epoch_end: "
        "validation/teacher_forced/token_nll is not there when",
    )


def test_error_of_a_callback_at_its_setup_has_its_place_in_front(
    command: Command, folder: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    (folder / "refusing_callback.py").write_text(
        "import pytorch_lightning as pl\n"
        "from pytorch_lightning.utilities.exceptions import MisconfigurationException\n\n\n"
        "class Refuses(pl.Callback):\n"
        "    def setup(self, trainer, pl_module, stage):\n"
        "        raise MisconfigurationException('not like this')\n"
    )
    refused(
        command("train.py", *tiny, "+callbacks.mine._target_=refusing_callback.Refuses"),
        "callbacks.mine: not like this",
    )


def test_callback_that_stops_a_training_before_its_first_step_is_named_as_the_cause(
    command: Command, folder: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    (folder / "stopping_callback.py").write_text(
        "import pytorch_lightning as pl\n\n\n"
        "class Stops(pl.Callback):\n"
        "    def on_train_start(self, trainer, pl_module):\n"
        "        trainer.should_stop = True\n"
    )
    ended = command("train.py", *tiny, "+callbacks.a._target_=stopping_callback.Stops")
    assert (
        "callbacks: one of them stopped the training at step 0, before its first validation"
        in ended.err
    )
    assert "Traceback" not in ended.err
