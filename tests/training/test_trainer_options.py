"""Batches in parts, limits in minutes and batches, and additions to Lightning's Trainer."""

from __future__ import annotations

import os
import signal

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping
from pytorch_lightning.profilers import SimpleProfiler

from attnlab.data.sampler import Batching
from attnlab.errors import ExperimentError
from attnlab.training.checkpoints import checkpoint_step
from attnlab.training.configured_parts import configured_parts

# 48 pairs in batches of 16 and parts of 6, 5 and 5 pairs, whose numbers of tokens differ.
CHOICES = {"max_steps": 7, "validate_every": 3, "batching": Batching("sentences", 16, False, None)}
SAME = (
    "train/token_nll",
    "train/epoch_token_nll",
    "train/gradient_norm",
    "validation/teacher_forced/token_nll",
)


def test_batch_in_parts_trains_as_the_whole_batch(train):
    whole = train(**CHOICES)
    parts = train(**CHOICES, accumulate=3)
    assert parts.trainer.global_step == whole.trainer.global_step == 7
    for name in SAME:
        assert parts.curve(name) == [
            (step, pytest.approx(value, rel=1e-4)) for step, value in whole.curve(name)
        ], name
    for ours, theirs in zip(parts.module.parameters(), whole.module.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


class AskInTheMiddle(pl.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step == 4 and batch_idx % 3 == 0:
            os.kill(os.getpid(), signal.SIGTERM)


def test_training_stopped_between_two_parts_saves_after_the_whole_batch(train):
    whole = train(**CHOICES, accumulate=3)
    with pytest.raises(SystemExit):
        train(**CHOICES, accumulate=3, callbacks=[AskInTheMiddle()], folder="stopped")
    again = train(**CHOICES, accumulate=3, folder="stopped", resume=True)
    assert again.curve("train/token_nll") == whole.curve("train/token_nll")
    assert all(map(torch.equal, again.module.parameters(), whole.module.parameters()))


def test_training_ends_when_its_minutes_are_over_with_a_validated_model(train):
    run = train(**CHOICES | {"max_steps": 10_000}, max_minutes=1e-4)
    assert 0 < run.trainer.global_step < 10_000
    assert checkpoint_step(run.folder / "checkpoints" / "last.ckpt") == run.trainer.global_step
    assert run.checkpoint.best_model_path


def test_limit_of_batches_shortens_epochs_and_validations(train):
    batches = []

    class Count(pl.Callback):
        def on_validation_batch_end(
            self, trainer, module, outputs, batch, batch_idx, dataloader_idx=0
        ):
            batches.append(batch_idx)

    run = train(
        **CHOICES | {"max_steps": 4, "validate_every": None},
        accumulate=2,
        limit_batches=1,
        callbacks=[Count()],
    )
    assert run.trainer.current_epoch == 4
    assert batches == [0] * 4


def test_trainer_takes_options_of_lightning(train):
    run = train(**CHOICES, options={"profiler": "simple", "enable_model_summary": True})
    assert isinstance(run.trainer.profiler, SimpleProfiler)
    assert any(
        isinstance(callback, pl.callbacks.ModelSummary) for callback in run.trainer.callbacks
    )


def test_profiler_with_a_filename_writes_into_the_experiments_folder(train):
    node = {"_target_": "pytorch_lightning.profilers.SimpleProfiler", "filename": "times"}
    run = train(**CHOICES, options={"profiler": node})
    assert "Profiler Report" in (run.folder / "fit-times.txt").read_text()


def test_callbacks_of_a_config_are_built_and_checked(tmp_path):
    device = {"_target_": "pytorch_lightning.callbacks.DeviceStatsMonitor", "cpu_stats": True}
    ((made,), _) = configured_parts({"device": device}, {}, tmp_path)
    assert isinstance(made, pl.callbacks.DeviceStatsMonitor)
    nodes = {
        "mine": {"_target_": "pathlib.Path"},
        "rate": {
            "_target_": "pytorch_lightning.callbacks.LearningRateMonitor",
            "logging_interval": "never",
        },
    }
    with pytest.raises(ExperimentError) as caught:
        configured_parts(nodes, {}, tmp_path)
    first, second = caught.value.problems
    assert first.startswith(
        "callbacks.mine._target_ is 'pathlib.Path', but it is not a subclass of "
    )
    assert "; it must be one of pytorch_lightning.callbacks.BackboneFinetuning, " in first
    assert second.startswith("callbacks.rate.logging_interval must be one of step, epoch or null")


class StopAtTheEndOfAnEpoch(pl.Callback):
    def on_train_epoch_end(self, trainer, module):
        trainer.should_stop = True


@pytest.mark.parametrize(
    "stop",
    [
        StopAtTheEndOfAnEpoch(),
        EarlyStopping("train/token_nll", check_on_train_epoch_end=True, stopping_threshold=100.0),
    ],
    ids=["own", "early_stopping"],
)
def test_training_stopped_at_the_end_of_an_epoch_is_validated_and_saved(train, stop):
    run = train(**CHOICES | {"max_steps": 20, "validate_every": 10}, callbacks=[stop])
    assert run.trainer.global_step == 4  # an epoch has 3 steps; the validation comes after another
    assert [step for step, _ in run.curve("validation/teacher_forced/token_nll")] == [4]
    assert checkpoint_step(run.folder / "checkpoints" / "last.ckpt") == 4
    assert run.checkpoint.best_model_path


@pytest.mark.parametrize("choices", [{"validate_every": None}, {"validate_every": 2}])
def test_metrics_of_steps_can_be_monitored_at_every_validation(train, choices):
    stop = EarlyStopping("train/token_nll", patience=100)
    run = train(**CHOICES | {"log_every": 50} | choices, callbacks=[stop])
    assert run.trainer.global_step == 7
    # Loggers have the last step alone
    assert [step for step, _ in run.curve("train/gradient_norm")] == [7]
