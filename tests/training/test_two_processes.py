"""Two processes on the CPU that share every batch learn the same as one process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import psutil
import pytest
import pytorch_lightning as pl
import torch

from attnlab.config.part import Part
from attnlab.data.sampler import Batching
from attnlab.errors import ExperimentError
from attnlab.model.normalisers.reinforce import Reinforce
from attnlab.training.attention_schedule import LateAttentionSchedule
from attnlab.training.checkpoints import best_checkpoints, checkpoint_step
from attnlab.training.spool import history
from attnlab.training.teacher_forcing import ConstantTeacherForcing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork"
    ),
]
STEPS = 12
NAMES = {signal.SIGTERM: "SIGTERM", signal.SIGUSR1: "SIGUSR1", signal.SIGINT: "Ctrl-C"}


class Recorder(pl.Callback):
    """Saves the losses, batches and final weights of each process."""

    def __init__(self, folder):
        self.folder, self.losses, self.rows = folder, [], []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.losses.append(outputs["loss"].item())
        self.rows.append(batch.rows.tolist())

    def on_train_end(self, trainer, pl_module):
        self.folder.mkdir(parents=True, exist_ok=True)
        found = {"losses": self.losses, "rows": self.rows, "world_size": trainer.world_size}
        if pl_module.reinforcement is not None:
            found["baseline"] = pl_module.reinforcement.baseline.item()
        torch.save(
            {**found, "weights": pl_module.model.state_dict()},
            self.folder / f"{trainer.global_rank}.pt",
        )


# 48 pairs in batches of 5. The last batch of an epoch has 3, and the two shares of a batch never
# hold the same tokens.
CHOICES = {
    "max_steps": STEPS,
    "validate_every": 4,
    "batching": Batching("sentences", 5, False, None),
}
TWO = {"devices": 2, "strategy": "ddp_fork"}


def trained(train, folder, **choices):
    run = train(callbacks=[Recorder(folder)], **(CHOICES | choices))
    return run, [torch.load(path, weights_only=True) for path in sorted(folder.glob("*.pt"))]


@pytest.mark.parametrize(
    "choices",
    [
        {"teacher_forcing": ConstantTeacherForcing(0.5)},
        # Without attention, some weights get no gradient.
        {"attention_schedule": LateAttentionSchedule(3, "uniform")},
    ],
    ids=["guesses", "late attention"],
)
def test_two_processes_equal_one_in_losses_weights_and_metrics(choices, train, tmp_path):
    alone, (whole,) = trained(train, tmp_path / "one", **choices)
    both, shares = trained(train, tmp_path / "two", on=TWO, keep_best=2, **choices)

    assert [share["world_size"] for share in shares] == [2, 2]
    assert all(len(share["losses"]) == STEPS for share in shares)
    # 1. Each global batch is shared out, without a rest or a double.
    first, second = (share["rows"] for share in shares)
    for rows, ours, theirs in zip(whole["rows"], first, second, strict=True):
        assert sorted(ours + theirs) == sorted(rows)
        assert not set(ours) & set(theirs)
        assert ours
        assert theirs
    # 2. Both processes end with the same weights, to the bit, and they have learned.
    for name, value in shares[0]["weights"].items():
        assert torch.equal(value, shares[1]["weights"][name]), name
    # 3. The mean of the two losses is the loss of one process on the whole batch, from the first
    # step to the last.
    for t, loss in enumerate(whole["losses"]):
        assert (shares[0]["losses"][t] + shares[1]["losses"][t]) / 2 == pytest.approx(
            loss, abs=1e-5
        ), t
    assert min(whole["losses"][-3:]) < whole["losses"][0]
    for name, value in whole["weights"].items():
        torch.testing.assert_close(shares[0]["weights"][name], value, rtol=0, atol=1e-4)
    # 4. What is logged is of all tokens and all sentences.
    decoded = [f"validation/free_running/{name}" for name in ("bleu", "chrf", "exact_match")]
    for name in ("validation/teacher_forced/token_nll", *decoded, "train/epoch_token_nll"):
        assert len(both.curve(name)) == len(alone.curve(name)) > 0, name
        assert both.values(name) == pytest.approx(alone.values(name), abs=1e-4), name
    # 5. The first process alone writes, and the parent knows where the best checkpoints are.
    saved = torch.load(both.checkpoint.best_model_path, weights_only=True)
    assert saved["global_step"] > 0
    assert (both.folder / "checkpoints" / "last.ckpt").is_file()
    curve = both.values("validation/teacher_forced/token_nll")
    ranked = sorted(range(len(curve)), key=curve.__getitem__)
    names = [path.name for path in best_checkpoints(both.checkpoint, 2)]
    assert names == [f"step={4 * (i + 1)}.ckpt" for i in ranked[:2]]


def test_two_processes_take_a_batch_in_parts_as_one_takes_it_whole(train, tmp_path):
    choices = {"max_steps": 4, "batching": Batching("sentences", 9, False, None)}
    _, (whole,) = trained(train, tmp_path / "one", **choices)
    _, shares = trained(train, tmp_path / "two", on=TWO, accumulate=2, **choices)
    for name, value in whole["weights"].items():
        torch.testing.assert_close(shares[0]["weights"][name], value, rtol=0, atol=1e-5)


def likeliest(normaliser, scores):
    """In place of a draw, which differs from process to process."""
    return torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


@pytest.mark.parametrize("choices", [{}, {"accumulate": 2}, {"average_decay": 0.9}], ids=repr)
def test_two_processes_learn_from_rewards_as_one(choices, train, tmp_path, monkeypatch):
    """Each compares its rewards with the mean of all of them, and their gradients are averaged."""
    monkeypatch.setattr(Reinforce, "forward", likeliest)
    drawn = {
        "model": {"normaliser": "reinforce"},
        "batching": Batching("sentences", 8, False, None),  # six whole ones an epoch
        "optimizer": Part(torch.optim.SGD, lr=0.5),
        "gradient_clip": 0.0,
    }
    _, (whole,) = trained(train, tmp_path / "one", **drawn, **choices)
    _, shares = trained(train, tmp_path / "two", on=TWO, **drawn, **choices)
    for name, value in whole["weights"].items():
        assert torch.equal(shares[0]["weights"][name], shares[1]["weights"][name]), name
        torch.testing.assert_close(shares[0]["weights"][name], value, rtol=0, atol=1e-5)
    baselines = [each["baseline"] for each in (whole, *shares)]
    assert baselines[1] == baselines[2] == pytest.approx(baselines[0], abs=1e-5)
    assert baselines[0] < -0.5


def test_two_processes_repeat_their_bits(train, tmp_path):
    results = [
        trained(train, tmp_path / str(i), on=TWO, max_steps=4, dropout=0.2)[1][0]["weights"]
        for i in range(2)
    ]
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])


class AtStep(pl.Callback):
    """Calls a function with the trainer after a step.

    It is called in the process of a rank or, where that is None, in each.
    """

    def __init__(self, step, action, rank=0):
        self.step, self.action, self.rank = step, action, rank

    def on_train_batch_end(self, trainer, *args):
        if trainer.global_step == self.step and self.rank in (None, trainer.global_rank):
            self.action(trainer)


@pytest.mark.parametrize(
    ("number", "rank"), [(signal.SIGTERM, 1), (signal.SIGUSR1, 0), (signal.SIGINT, 1)]
)
def test_two_processes_stop_at_the_same_step_and_resume_exactly(
    number, rank, train, tmp_path, capfd
):
    choices = {**CHOICES, "on": TWO, "dropout": 0.3, "teacher_forcing": ConstantTeacherForcing(0.5)}
    whole = train(**choices, callbacks=[Recorder(tmp_path / "whole")])
    ask = AtStep(6, lambda _: os.kill(os.getpid(), number), rank)
    with pytest.raises(
        ExperimentError, match=f"ended with exit code {128 + number}; the same command resumes"
    ):
        train(**choices, callbacks=[ask], folder="broken")
    assert f"{NAMES[number]}: saved at step 6" in capfd.readouterr().err
    again = train(**choices, callbacks=[Recorder(tmp_path / "again")], folder="broken", resume=True)
    for rank in range(2):
        first, second = (
            torch.load(tmp_path / name / f"{rank}.pt", weights_only=True)
            for name in ("whole", "again")
        )
        assert first["losses"][6:] == second["losses"]
        assert first["rows"][6:] == second["rows"]
        assert all(
            torch.equal(value, second["weights"][name]) for name, value in first["weights"].items()
        )
    assert list(history(whole.folder / "metrics.jsonl")) == list(
        history(again.folder / "metrics.jsonl")
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_to_the_parent_stops_its_training_processes(number, train, capfd):
    before, ask = signal.getsignal(number), AtStep(5, lambda _: os.kill(os.getppid(), number))
    with pytest.raises(SystemExit) as stopped:
        train(**{**CHOICES, "max_steps": 400, "on": TWO}, callbacks=[ask])
    assert stopped.value.code == 128 + number
    assert f"{NAMES[number]}: saved at step" in capfd.readouterr().err
    assert signal.getsignal(number) == before


def runs(process):
    try:
        # Nobody may be there to take its end
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def running_after_a_while(processes):
    """Those that have not ended after twenty seconds."""
    patience = time.monotonic() + 20
    while any(map(runs, processes)) and time.monotonic() < patience:
        time.sleep(0.1)
    return [process for process in processes if runs(process)]


def in_a_group_of_its_own(action):
    """The exit code of a forked process that runs `action`, 1 where it raises.

    The process is in a group of its own, which a terminal's Ctrl-C reaches.
    """
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            action()
        except SystemExit as stopped:
            code = stopped.code
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.parametrize(
    "on",
    [{"workers": 2}, TWO, {**TWO, "workers": 1}],
    ids=["loader workers", "two processes", "both"],
)
def test_ctrl_c_at_the_terminal_saves_a_checkpoint_and_stops_all_processes(
    on, train, tmp_path, capfd
):
    choices = {**CHOICES, "max_steps": 400, "validate_every": 400, "on": on, "folder": "broken"}
    press = AtStep(6, lambda _: os.killpg(0, signal.SIGINT))
    assert in_a_group_of_its_own(lambda: train(**choices, callbacks=[press])) == 128 + signal.SIGINT
    said = capfd.readouterr().err
    assert said.count("Ctrl-C: training saves and stops") == 1
    assert said.count("Ctrl-C: saved at step") == 1
    assert "Traceback" not in said
    assert checkpoint_step(tmp_path / "broken" / "checkpoints" / "last.ckpt") in range(6, 10)


def test_second_ctrl_c_at_the_terminal_stops_all_processes_at_once(train, tmp_path, capfd):
    def press_twice(_):
        (tmp_path / "rank").write_text(str(os.getpid()))
        os.killpg(0, signal.SIGINT)
        time.sleep(1)
        os.killpg(0, signal.SIGINT)
        time.sleep(60)

    choices = {**CHOICES, "max_steps": 400, "validate_every": 400, "on": TWO, "folder": "broken"}
    began = time.monotonic()
    assert (
        in_a_group_of_its_own(lambda: train(**choices, callbacks=[AtStep(6, press_twice)])) == 1
    )  # as Lightning has it
    assert time.monotonic() - began < 40
    assert "saved at step" not in capfd.readouterr().err
    assert running_after_a_while([int((tmp_path / "rank").read_text())]) == []


def test_training_with_a_killed_process_reports_its_signal(train):
    with pytest.raises(
        ExperimentError, match="one of the 2 training processes was killed by SIGKILL"
    ):
        train(
            **{**CHOICES, "on": TWO},
            callbacks=[AtStep(5, lambda _: os.kill(os.getpid(), signal.SIGKILL))],
        )


def test_training_processes_end_when_their_parent_is_killed(train, tmp_path):
    """They would train on, and write, beside a resumed training."""

    note = AtStep(
        4,
        lambda trainer: (tmp_path / str(trainer.global_rank)).write_text(str(os.getpid())),
        rank=None,
    )
    kill = AtStep(6, lambda _: os.kill(os.getppid(), signal.SIGKILL))
    parent = os.fork()
    if parent == 0:
        try:
            # As in the background of a shell script: torch itself would only interrupt them.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            train(**{**CHOICES, "max_steps": 100_000, "on": TWO}, callbacks=[note, kill])
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == -signal.SIGKILL
    ranks = [int((tmp_path / str(rank)).read_text()) for rank in range(2)]
    left = running_after_a_while(ranks)
    for rank in left:
        os.kill(rank, signal.SIGKILL)
    assert left == []


def test_error_in_a_training_process_is_raised_in_the_parent(train):
    def mistake(_):
        raise ExperimentError("the sentence")

    with pytest.raises(ExperimentError, match=r"^the sentence$"):
        train(**{**CHOICES, "on": TWO}, callbacks=[AtStep(1, mistake, rank=None)])


def test_resume_with_another_number_of_processes_is_refused(train):
    train(**{**CHOICES, "on": TWO, "max_steps": 4}, folder="kept")
    with pytest.raises(
        ExperimentError, match=r"started with 2 process\(es\) and cannot resume with 1; choose"
    ):
        train(**CHOICES, folder="kept", resume=True)
