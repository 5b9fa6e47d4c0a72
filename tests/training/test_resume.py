"""A training that was stopped and resumed equals the uninterrupted one, to the bit."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest
import pytorch_lightning as pl
import torch

from attnlab.config.part import Part
from attnlab.data.sampler import Batching
from attnlab.training.attention_schedule import LateAttentionSchedule
from attnlab.training.checkpoints import best_checkpoints
from attnlab.training.resume import ExactResume
from attnlab.training.spool import MetricSpool, history
from attnlab.training.teacher_forcing import ConstantTeacherForcing


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
    assert list(history(whole.folder / "metrics.jsonl")) == list(
        history(again.folder / "metrics.jsonl")
    )
    assert whole.checkpoint.best_model_score == again.checkpoint.best_model_score


WHOLE = {}


@pytest.fixture
def uninterrupted(train):
    """A training with these choices that nobody stops, the same one for all tests."""

    def run(**choices):
        if repr(choices) not in WHOLE:
            WHOLE[repr(choices)] = train(**choices)
        return WHOLE[repr(choices)]

    return run


@pytest.fixture
def stop_before(train):
    """Trains in the folder `broken` up to a step."""

    def run(step, **choices):
        with pytest.raises(StoppedError):
            train(**choices, callbacks=[StopBefore(step)], folder="broken")

    return run


# Epochs of 17, 18, 17 and 16 steps.
BY_TOKENS = {"batching": Batching("tokens", size=24, pool=2), "max_steps": 60}

# An epoch has three steps: the last checkpoint, of step 4, lies within one.
STOPPED = [
    *(({"validate_every": every}, stop) for every in (4, None, 3, 5) for stop in (5, 9, 12, 13)),
    *(
        (choices, 8)
        for choices in (
            {"on": {"workers": 2}},
            {"model": {"cell": "gru"}},
            {"model": {"cell": "rnn"}},
            {"model": {"history": "mocha"}},  # with noise on its scores
        )
    ),
    # In the second epoch, at its end, and in the third.
    *(
        ({**BY_TOKENS, "validate_every": every}, stop)
        for every in (4, None)
        for stop in (30, 36, 45)
    ),
    pytest.param(
        {"on": {"precision": "bf16"}}, 8, marks=[pytest.mark.bfloat16, pytest.mark.processor]
    ),
    *((choices, 8) for choices in ({"patience": 3}, {"accumulate": 2}, {"average_decay": 0.9})),
    # The draws go on, and so does the mean that their rewards are compared with.
    *(
        ({"model": {"normaliser": "reinforce"}, **choices}, 8)
        for choices in ({}, {"accumulate": 2}, {"average_decay": 0.9})
    ),
    # Stopped while the attention is off, at the step that switches it on, and after.
    *(({"attention_schedule": LateAttentionSchedule(10, "uniform")}, stop) for stop in (8, 10, 14)),
]


@pytest.mark.parametrize(("choices", "stop"), STOPPED, ids=repr)
def test_resumed_training_from_any_step_equals_an_uninterrupted_one(
    train, uninterrupted, stop_before, choices, stop
):
    choices = {**CHOICES, "validate_every": 4, **choices}
    stop_before(stop, **choices)
    assert_the_same(train(**choices, folder="broken", resume=True), uninterrupted(**choices))


def test_resumed_training_in_a_moved_folder_keeps_its_best_checkpoints(
    train, stop_before, tmp_path
):
    choices = {**CHOICES, "validate_every": 4, "keep_best": 3, "average_checkpoints": 3}
    whole = train(**choices)
    stop_before(18, **choices)
    (tmp_path / "broken").rename(tmp_path / "moved")
    again = train(**choices, folder="moved", resume=True)
    assert_the_same(again, whole)
    best = best_checkpoints(again.checkpoint, 3)
    assert [path.name for path in best] == [
        path.name for path in best_checkpoints(whole.checkpoint, 3)
    ]
    assert {path.parent for path in best} == {tmp_path / "moved" / "checkpoints"}


@pytest.mark.parametrize("patience", [None, 1])
def test_resumed_training_that_was_complete_trains_no_step(train, patience):
    # At this rate the second validation is worse than the first.
    choices = {**CHOICES, "validate_every": 3, "patience": patience}
    if patience is not None:
        choices["optimizer"] = Part(torch.optim.Adam, lr=3.0, fused=True)
    whole = train(**choices, folder="kept")
    assert (whole.trainer.global_step < 20) == (patience is not None)
    curves = list(history(whole.folder / "metrics.jsonl"))
    again = train(**choices, folder="kept", resume=True)
    assert again.trainer.global_step == whole.trainer.global_step
    assert again.trainer.state.status == "finished"
    assert again.checkpoint.best_model_path == whole.checkpoint.best_model_path
    assert list(history(again.folder / "metrics.jsonl")) == curves


class Asked(pl.Callback):
    """Sends this process a signal in the middle of a step or of a validation."""

    def __init__(self, number, step, hook):
        self.number, self.step = number, step
        setattr(self, hook, self.ask)

    def ask(self, trainer, *args):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), self.number)


# Epochs have three steps: the first and the last step of one, those before and after a validation,
# a second epoch's.
@pytest.mark.parametrize(
    ("validate_every", "step"),
    [(4, 1), (4, 3), (4, 4), (4, 5), (None, 3), (None, 4), (7, 6), (7, 8)],
)
@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "Ctrl-C")]
)
def test_training_stopped_by_a_signal_saves_after_the_step_and_repeats_none(
    train, uninterrupted, validate_every, step, number, name, capfd
):
    choices = {**CHOICES, "validate_every": validate_every}
    steps = Steps()
    with pytest.raises(SystemExit) as stopped:
        train(
            **choices, callbacks=[Asked(number, step, "on_train_batch_end"), steps], folder="broken"
        )
    assert stopped.value.code == 128 + number
    assert (
        f"{name}: saved at step {step}; the same command resumes from there"
        in capfd.readouterr().err
    )
    again = Steps()
    assert_the_same(
        train(**choices, callbacks=[again], folder="broken", resume=True), uninterrupted(**choices)
    )
    assert steps.taken + again.taken == list(range(20))


def test_ctrl_c_before_the_first_step_says_that_nothing_was_saved(train, capfd):
    asked = Asked(signal.SIGINT, 0, "on_train_epoch_start")
    with pytest.raises(SystemExit):
        train(**CHOICES, callbacks=[asked], folder="broken")
    said = capfd.readouterr().err
    assert "Ctrl-C: nothing was saved yet; the same command starts the training again\n" in said
    assert "saved at step" not in said


class Steps(pl.Callback):
    def __init__(self):
        self.taken = []

    def on_train_batch_end(self, trainer, *args):
        self.taken.append(trainer.global_step - 1)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGINT])
@pytest.mark.parametrize("step", [4, 20])
def test_signal_during_a_validation_stops_training_after_it(train, uninterrupted, step, number):
    choices = {**CHOICES, "validate_every": 4}
    asked = Asked(number, step, "on_validation_batch_end")
    with pytest.raises(SystemExit) as stopped:
        train(**choices, callbacks=[asked], folder="broken")
    assert stopped.value.code == 128 + number
    assert_the_same(train(**choices, folder="broken", resume=True), uninterrupted(**choices))


def test_second_ctrl_c_while_saving_stops_training_and_leaves_the_checkpoint_before(
    train, uninterrupted, monkeypatch, capfd
):
    choices = {**CHOICES, "validate_every": 4}
    save = torch.save

    def interrupted(checkpoint, file):
        save(checkpoint, file)
        if checkpoint["global_step"] == 6:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(torch, "save", interrupted)
    with pytest.raises(SystemExit):
        train(**choices, callbacks=[Asked(signal.SIGINT, 6, "on_train_batch_end")], folder="broken")
    monkeypatch.undo()
    said = capfd.readouterr().err
    assert "Ctrl-C again stops it at once" in said
    assert "saved at step" not in said
    again = Steps()
    assert_the_same(
        train(**choices, callbacks=[again], folder="broken", resume=True), uninterrupted(**choices)
    )
    assert again.taken[0] == 4


def test_signal_handler_from_before_is_called_and_decides(train):
    """Such as submitit's handler, which requeues the job."""
    heard = []
    before = signal.signal(signal.SIGUSR2, lambda number, frame: heard.append(number))
    try:
        whole = train(**CHOICES)
        again = train(**CHOICES, callbacks=[Asked(signal.SIGUSR2, 6, "on_train_batch_end")])
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert heard == [signal.SIGUSR2]
    assert_the_same(again, whole)


@pytest.fixture
def job_of_slurm(tmp_path, monkeypatch):
    """This process is a task of job 12; returns a function that sets what `scontrol` does."""
    for name in ("SUBMITIT_EXECUTOR", "SLURM_ARRAY_JOB_ID", "SLURM_JOB_NAME"):
        monkeypatch.delenv(name, raising=False)
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    for name, value in {"SLURM_JOB_ID": "12", "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}.items():
        monkeypatch.setenv(name, value)
    for name in ("SLURM_LOCALID", "SLURM_NODEID"):
        monkeypatch.setenv(name, "0")

    def scontrol(script):
        (programs / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "scontrol").chmod(0o755)

    return scontrol


def stopped_by_sigusr1(train):
    with pytest.raises(SystemExit) as stopped:
        train(**CHOICES, callbacks=[Asked(signal.SIGUSR1, 6, "on_train_batch_end")])
    assert stopped.value.code == 128 + signal.SIGUSR1


def test_sigusr1_in_a_job_of_slurm_queues_it_again(train, job_of_slurm, tmp_path, capfd):
    job_of_slurm(f'echo "$@" >> {tmp_path}/asked')
    stopped_by_sigusr1(train)
    assert (tmp_path / "asked").read_text() == "requeue 12\n"
    assert (
        "SIGUSR1: saved at step 6; Slurm queues job 12 again, which resumes from there"
        in capfd.readouterr().err
    )


def test_task_of_an_array_is_queued_again_alone(train, job_of_slurm, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "7")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    job_of_slurm(f'echo "$@" >> {tmp_path}/asked')
    stopped_by_sigusr1(train)
    assert (tmp_path / "asked").read_text() == "requeue 7_3\n"


def test_job_that_slurm_does_not_queue_again_says_why(train, job_of_slurm, capfd):
    job_of_slurm("echo 'Requested operation is presently disabled for job 12' >&2; exit 1")
    stopped_by_sigusr1(train)
    assert (
        "SIGUSR1: saved at step 6; Slurm does not queue job 12 again (Requested operation is "
        "presently disabled for job 12); the same command resumes from there"
    ) in capfd.readouterr().err


@pytest.mark.parametrize("variable", ["SUBMITIT_EXECUTOR", None])
def test_sigusr1_asks_slurm_for_nothing_in_a_sweep_and_elsewhere(
    train, job_of_slurm, monkeypatch, tmp_path, variable
):
    job_of_slurm(f"touch {tmp_path}/asked")
    if variable is None:
        monkeypatch.delenv("SLURM_JOB_ID")
    else:
        monkeypatch.setenv(variable, "slurm")
    stopped_by_sigusr1(train)
    assert not (tmp_path / "asked").exists()


def test_signal_handlers_are_restored_after_training(train):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
    before = [signal.getsignal(number) for number in numbers]
    train(**CHOICES)
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize(
    ("validate_every", "stop"), [(4, 4), (4, 5), (None, 2), (None, 3), (7, 4), (7, 12)]
)
def test_resumed_training_from_a_checkpoint_by_time_equals_an_uninterrupted_one(
    train, uninterrupted, stop_before, validate_every, stop
):
    choices = {**CHOICES, "validate_every": validate_every}
    stop_before(stop, **choices, save_every_minutes=1e-9)
    again = Steps()
    assert_the_same(
        train(**choices, callbacks=[again], folder="broken", resume=True), uninterrupted(**choices)
    )
    # It stopped before the checkpoint of this step, unless a validation had just written one.
    assert again.taken[0] == (stop if stop % (validate_every or 3) == 0 else stop - 1)


def test_resume_reports_up_to_where_the_metrics_are_safe(tmp_path):
    """This holds even if the training fails before its first step.

    The process that wrote the checkpoint may have been killed.
    """
    spool, reported = MetricSpool(tmp_path / "metrics.jsonl"), []
    spool.append({"loss": 1.0}, 1)
    reached = spool.size()
    spool.append({"loss": 0.5}, 2)  # behind the checkpoint
    going_on = ExactResume(spool, reported.append)
    trainer = SimpleNamespace(world_size=1, global_rank=0, is_global_zero=True)
    going_on.on_load_checkpoint(trainer, None, {"attnlab": {"processes": [{}], "spool": reached}})
    going_on.on_exception()
    assert reported == [reached]
