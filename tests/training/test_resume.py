"""A training that was stopped and goes on from its checkpoint is the training that was never stopped."""

from __future__ import annotations

import pytest
import pytorch_lightning as pl
import torch

from attnlab.training.optimizer import Adam
from attnlab.training.spool import history
from attnlab.training.teacher_forcing.constant import ConstantTeacherForcing


class StoppedError(Exception):
    pass


class StopBefore(pl.Callback):
    def __init__(self, step):
        self.step = step

    def on_train_batch_start(self, trainer, *args):
        if trainer.global_step == self.step:
            raise StoppedError


CHOICES = {"dropout": 0.3, "teacher_forcing": ConstantTeacherForcing(0.5), "max_steps": 20}


def assert_the_same(again, whole):
    for name, value in whole.module.model.state_dict().items():
        assert torch.equal(value, again.module.model.state_dict()[name]), name
    assert list(history(whole.folder / "metrics.jsonl")) == list(history(again.folder / "metrics.jsonl"))
    assert whole.checkpoint.best_model_score == again.checkpoint.best_model_score


@pytest.mark.parametrize("validate_every", [4, None, 3, 5])
@pytest.mark.parametrize("stop", [5, 9, 12, 13])
def test_stopped_and_gone_on_is_never_stopped(train, validate_every, stop):
    choices = {**CHOICES, "validate_every": validate_every}
    whole = train(**choices)
    with pytest.raises(StoppedError):
        train(**choices, callbacks=[StopBefore(stop)], folder="broken")
    assert_the_same(train(**choices, folder="broken", resume=True), whole)


@pytest.mark.parametrize(
    "choices",
    [
        {"on": {"workers": 2}},
        {"model": {"cell": "gru"}},
        {"model": {"cell": "rnn"}},
        {"on": {"precision": "bf16"}},
        {"patience": 3},
    ],
    ids=lambda choices: repr(choices),
)
def test_whatever_trains_goes_on(train, choices):
    choices = {**CHOICES, "validate_every": 3, **choices}
    whole = train(**choices)
    with pytest.raises(StoppedError):
        train(**choices, callbacks=[StopBefore(8)], folder="broken")
    assert_the_same(train(**choices, folder="broken", resume=True), whole)


@pytest.mark.parametrize("patience", [None, 1])
def test_killed_behind_the_last_step_there_is_nothing_left_to_train(train, patience):
    # At this rate the second validation is worse than the first.
    choices = {**CHOICES, "validate_every": 3, "patience": patience}
    if patience is not None:
        choices["optimizer"] = Adam(3.0)
    whole = train(**choices, folder="kept")
    assert (whole.trainer.global_step < 20) == (patience is not None)
    curves = list(history(whole.folder / "metrics.jsonl"))
    again = train(**choices, folder="kept", resume=True)
    assert again.trainer.global_step == whole.trainer.global_step
    assert again.trainer.state.status == "finished"
    assert again.checkpoint.best_model_path == whole.checkpoint.best_model_path
    assert list(history(again.folder / "metrics.jsonl")) == curves
