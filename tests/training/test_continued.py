"""A training that goes on from another experiment's checkpoint has its own settings."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping

from attnlab.config.part import Part
from attnlab.training.optimisation import (
    ConstantSchedule,
    CosineSchedule,
    HalvingSchedule,
    PlateauSchedule,
)

BEFORE = {"max_steps": 8, "validate_every": 4, "dropout": 0.3}


class StoppedError(Exception):
    pass


class StopBefore(pl.Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_start(self, trainer: pl.Trainer, *args: Any) -> None:
        if trainer.global_step == self.step:
            raise StoppedError


def adam(**values: Any) -> Part[Any]:
    return Part(torch.optim.Adam, **{"lr": 0.01, "fused": True, **values})


@pytest.fixture
def continued(train):
    """Trains to step 8 with some settings, and on to step 16 with others."""

    def run(before: dict[str, Any], after: dict[str, Any]):
        train(**{**BEFORE, **before}, folder="shared", identity="first")
        settings = {**BEFORE, **before, "max_steps": 16, **after}
        return train(**settings, folder="shared", identity="second", resume=True)

    return run


def rates(run) -> list[float]:
    return run.values("train/learning_rate")[8:]


def test_new_optimizer_settings_hold_from_the_next_step_on(continued):
    changed = {"lr": 0.002, "betas": (0.5, 0.9), "weight_decay": 0.1, "eps": 1e-6}
    run = continued({}, {"optimizer": adam(**changed)})
    (group,) = run.trainer.optimizers[0].param_groups
    assert {name: group[name] for name in changed} == changed
    assert rates(run) == pytest.approx([0.002] * 8)


@pytest.mark.parametrize("before", [ConstantSchedule(), PlateauSchedule(0.5, 0)], ids=repr)
@pytest.mark.parametrize(
    "schedule",
    [CosineSchedule(warmup_steps=2), HalvingSchedule(10, 2), ConstantSchedule()],
    ids=repr,
)
def test_new_schedule_of_the_step_holds_as_of_the_whole_training(
    continued, train, before, schedule
):
    run = continued({"schedule": before}, {"schedule": schedule})
    whole = train(**{**BEFORE, "max_steps": 16, "schedule": schedule})
    assert rates(run) == rates(whole)


def test_cosine_of_more_steps_starts_at_once(continued, train):
    run = continued({"schedule": CosineSchedule()}, {})
    whole = train(**{**BEFORE, "max_steps": 16, "schedule": CosineSchedule()})
    assert rates(run) == rates(whole)


def test_plateau_gets_its_new_settings_and_keeps_its_rate(continued):
    run = continued({"schedule": PlateauSchedule(0.5, 0)}, {"schedule": PlateauSchedule(0.1, 7)})
    plateau = run.module.lr_schedulers()
    assert (plateau.factor, plateau.patience) == (0.1, 7)
    assert rates(run)[0] == run.values("train/learning_rate")[7]


@pytest.mark.parametrize(("patience", "validations"), [(1, 0), (2, 0), (4, 2)])
def test_new_patience_counts_validations_of_both_trainings(continued, patience, validations):
    # At a rate of zero no validation is better than the first one.
    still = {"optimizer": adam(lr=1e-30), "max_steps": 12}
    run = continued({**still, "patience": 2}, {"patience": patience, "max_steps": 40})
    assert len(run.values("validation/teacher_forced/token_nll")) == 3 + validations


def test_settings_of_a_callback_of_the_config_hold(train):
    def stopping(patience: int) -> EarlyStopping:
        return EarlyStopping("validation/teacher_forced/token_nll", patience=patience)

    train(**BEFORE, folder="shared", identity="first", callbacks=[stopping(5)])
    mine = stopping(9)
    more = {**BEFORE, "max_steps": 16, "callbacks": [mine]}
    train(**more, folder="shared", identity="second", resume=True)
    assert mine.patience == 9
    assert mine.best_score < torch.inf


def test_fewer_best_checkpoints_are_kept(continued):
    run = continued({"keep_best": 2}, {"keep_best": 1})
    assert len(list((run.folder / "checkpoints").glob("step=*.ckpt"))) <= 2
    assert list(run.checkpoint.best_k_models) == [run.checkpoint.best_model_path]


@pytest.mark.parametrize(
    "after",
    [
        {"optimizer": adam(lr=0.002, weight_decay=0.1), "patience": 5},
        {"schedule": CosineSchedule(warmup_steps=2)},
    ],
    ids=["optimizer and patience", "schedule"],
)
def test_continued_training_that_was_stopped_resumes_exactly(continued, train, tmp_path, after):
    whole = continued({}, after)
    (tmp_path / "shared").rename(tmp_path / "whole")

    train(**BEFORE, folder="shared", identity="first")
    settings = {**BEFORE, "max_steps": 16, **after, "folder": "shared", "identity": "second"}
    for step in (10, 14):  # before its first checkpoint, and after
        with pytest.raises(StoppedError):
            train(**settings, resume=True, callbacks=[StopBefore(step)])
    again = train(**settings, resume=True)
    for name, value in whole.module.model.state_dict().items():
        assert torch.equal(value, again.module.model.state_dict()[name]), name
    assert rates(again) == rates(whole)
