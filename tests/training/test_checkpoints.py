"""Checkpoint files: how they are written and checked, the best ones, and their mean weights."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from pytorch_lightning.callbacks import LambdaCallback

from attnlab.data.datamodule import EpochLengths
from attnlab.errors import ExperimentError
from attnlab.tasks.translation.settings import TOKEN_NLL
from attnlab.training.checkpoints import (
    CheckpointFiles,
    averaged_weights,
    best_checkpoints,
    checkpoint_step,
)
from attnlab.training.spool import MetricSpool
from attnlab.training.trainer import build_trainer


@pytest.fixture
def last(tmp_path):
    path = tmp_path / "last.ckpt"
    CheckpointFiles().save_checkpoint({"global_step": 7, "weights": torch.arange(10_000.0)}, path)
    return path


def test_checkpoint_step_of_an_undamaged_file_returns_the_step(last):
    assert checkpoint_step(last) == 7


@pytest.mark.parametrize("place", [0.02, 0.5, 0.98])
def test_checkpoint_with_one_changed_byte_is_refused(last, place):
    content = bytearray(last.read_bytes())
    start = content.index(torch.arange(10_000.0).numpy().tobytes()[:64])
    content[start + int(place * 40_000)] ^= 1
    last.write_bytes(content)
    with pytest.raises(ValueError, match="the checksum of its part"):
        checkpoint_step(last)


@pytest.mark.parametrize("length", [0, 100, -1])
def test_checkpoint_that_is_truncated_is_refused(last, length):
    last.write_bytes(last.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"\w"):
        checkpoint_step(last)


def test_checkpoint_with_a_pickle_is_refused_and_runs_no_code(last, tmp_path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"global_step": 7, "payload": Payload()}, last)
    with pytest.raises(ValueError, match="Weights only load failed"):
        checkpoint_step(last)
    assert not (tmp_path / "ran").exists()


def test_saving_the_last_checkpoint_keeps_the_previous_one(last):
    CheckpointFiles().save_checkpoint({"global_step": 9}, last)
    assert checkpoint_step(last) == 9
    assert checkpoint_step(last.with_name("before_last.ckpt")) == 7
    assert sorted(path.name for path in last.parent.iterdir()) == ["before_last.ckpt", "last.ckpt"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize(("place", "function"), [(torch, "save"), (os, "fsync")])
def test_checkpoint_that_cannot_be_written_leaves_the_older_ones(
    last, place, function, number, monkeypatch
):
    before = last.read_bytes()

    def fail(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(place, function, fail)
    with pytest.raises(
        ExperimentError, match=f"could not be written: {os.strerror(number)}; older checkpoints"
    ):
        CheckpointFiles().save_checkpoint({"global_step": 9}, last)
    assert last.read_bytes() == before
    assert [path.name for path in last.parent.iterdir()] == ["last.ckpt"]


def spool(folder: Path) -> MetricSpool:
    return MetricSpool(folder / "metrics.jsonl")


def written(folder: Path, name: str, step: int, state: dict[str, torch.Tensor]) -> Path:
    torch.save({"state_dict": state, "global_step": step}, folder / name)
    return folder / name


def test_averaged_weights_equal_the_mean_of_numpy(tmp_path):
    random = np.random.default_rng(0)
    values = (random.standard_normal((3, 4, 5)) * 10.0 ** random.integers(-6, 6, (3, 4, 5))).astype(
        np.float32
    )
    paths = [
        written(tmp_path, f"{i}.ckpt", 10 - i, {"model.a.weight": torch.from_numpy(value)})
        for i, value in enumerate(values)
    ]
    weights, step = averaged_weights(paths)
    assert set(weights) == {"a.weight"}
    assert weights["a.weight"].dtype == torch.float32
    np.testing.assert_array_equal(
        weights["a.weight"].numpy(), values.astype(np.float64).mean(0).astype(np.float32)
    )
    assert step == 10  # that of the first


def test_averaged_weights_are_summed_in_double_precision(tmp_path):
    """In float32, 2^24 + 1 is 2^24."""
    values = [2.0**24, 1.0, 1.0, 2.0]
    paths = [
        written(tmp_path, f"{i}.ckpt", 1, {"model.w": torch.tensor([v])})
        for i, v in enumerate(values)
    ]
    assert averaged_weights(paths)[0]["w"].item() == 2.0**22 + 1


@pytest.mark.processor
def test_averaged_weights_of_one_checkpoint_are_its_own_bits(tmp_path):
    state = {"model.w": torch.randn(50) * 1e-20, "model.h": torch.randn(9).bfloat16()}
    weights, step = averaged_weights([written(tmp_path, "one.ckpt", 7, state)])
    assert step == 7
    torch.testing.assert_close(
        {f"model.{name}": value for name, value in weights.items()}, state, rtol=0, atol=0
    )


def test_averaged_weights_keep_counters_and_leave_out_metrics(tmp_path):
    states = [
        {
            "model.w": torch.full((2,), float(n)),
            "model.count": torch.tensor(n),
            "model.on": torch.tensor(n == 4),
        }
        | {"training_nll.mean_value": torch.tensor(9.0)}
        for n in (4, 7)
    ]
    paths = [written(tmp_path, f"{i}.ckpt", i, state) for i, state in enumerate(states)]
    weights, _ = averaged_weights(paths)
    assert set(weights) == {"w", "count", "on"}
    assert weights["w"].tolist() == [5.5, 5.5]
    assert weights["count"].item() == 4
    assert weights["count"].dtype == torch.int64
    assert weights["on"].item() is True


def planted_chrf(values: list[float]) -> LambdaCallback:
    """Lets the validations measure these values of chrF, one after the other."""
    planted = iter(values)

    def plant(trainer, module):
        module.text_metrics.compute = lambda: {"chrf": float(next(planted))}

    return LambdaCallback(on_fit_start=plant)


@pytest.mark.parametrize(("monitor", "lower_is_better"), [("token_nll", True), ("chrf", False)])
def test_best_checkpoints_are_those_with_the_best_logged_values(
    monitor, lower_is_better, train, settings, hardware
):
    choices = {
        "max_steps": 24,
        "validate_every": 4,
        "monitor": monitor,
        "keep_best": 4,
        "average_checkpoints": 3,
    }
    run = train(**choices, callbacks=[planted_chrf([3, 9, 1, 7, 8, 2])])
    curve = run.values(run.module.settings.monitored_metric)
    assert len(set(curve)) == 6
    ranked = sorted(range(6), key=curve.__getitem__, reverse=not lower_is_better)
    names = [f"step={4 * (i + 1)}.ckpt" for i in ranked]
    folder = run.folder / "checkpoints"
    assert best_checkpoints(run.checkpoint, 1) == [folder / names[0]]
    assert best_checkpoints(run.checkpoint, 3) == [folder / name for name in names[:3]]
    # As many as there are
    assert best_checkpoints(run.checkpoint, 9) == [folder / name for name in names[:4]]

    # Where training ran in other processes, the callback knows its best checkpoint and no other.
    elsewhere = build_trainer(
        settings(**choices),
        hardware(),
        epochs=EpochLengths.all_alike(3),
        checkpoints=folder,
        spool=spool(run.folder),
    ).best_checkpoints
    elsewhere.best_model_path = run.checkpoint.best_model_path
    assert best_checkpoints(elsewhere, 3) == [folder / name for name in names[:3]]

    weights, step = averaged_weights(best_checkpoints(run.checkpoint, 3))
    assert step == 4 * (ranked[0] + 1)
    run.module.model.load_state_dict(weights)


def test_moving_average_is_validated_drawn_and_kept_while_training_goes_on_from_the_plain_weights(
    train,
):
    steps, drawn = [], []
    watch = LambdaCallback(
        on_train_batch_end=lambda trainer, module, *_: steps.append(copied(module.model)),
        on_validation_end=lambda trainer, module: drawn.append(copied(module.model)),
    )
    run = train(max_steps=6, validate_every=3, average_decay=0.3, callbacks=[watch])
    plain = train(max_steps=6, validate_every=3)
    average = steps[0]
    for number, weights in enumerate(steps[1:], 1):
        decay = min(0.3, (1 + number) / (10 + number))  # 2/11, 3/12, 4/13, and then 0.3
        average = {name: decay * average[name] + (1 - decay) * weights[name] for name in average}
    kept, step = averaged_weights([run.folder / "checkpoints" / "step=6.ckpt"])
    assert step == 6
    torch.testing.assert_close(kept, average)
    torch.testing.assert_close(drawn[-1], average)
    torch.testing.assert_close(steps[-1], copied(plain.module.model))
    assert run.values("train/token_nll") == plain.values("train/token_nll")
    assert run.values(TOKEN_NLL) != plain.values(TOKEN_NLL)


def copied(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("damage", ["some bytes", "cut short", "gone"])
def test_best_checkpoints_refuse_a_damaged_file(damage, count, train):
    run = train(max_steps=8, validate_every=4, keep_best=2, average_checkpoints=2)
    path = best_checkpoints(run.checkpoint, count)[-1]
    content = bytearray(path.read_bytes())
    half = len(content) // 2
    middle = slice(half, half + 500)  # more than the pads between its parts, without checksums
    content[middle] = bytes(byte ^ 1 for byte in content[middle])
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:100] if damage == "cut short" else content)
    with pytest.raises(
        ExperimentError, match=rf"{path.name}, needed for the final model, is damaged: .*rerun=true"
    ):
        best_checkpoints(run.checkpoint, count)


def test_training_with_fewer_validations_than_averaged_checkpoints_is_refused(
    settings, hardware, tmp_path
):
    """Nine steps, validated every four, are validated three times: after the ninth as well."""

    def build(average: int) -> None:
        chosen = settings(max_steps=9, validate_every=4, keep_best=5, average_checkpoints=average)
        build_trainer(
            chosen,
            hardware(),
            epochs=EpochLengths.all_alike(3),
            checkpoints=tmp_path,
            spool=spool(tmp_path),
        )

    build(3)
    sentence = r"^training\.average_checkpoints .* got 4, but 9 steps are validated 3 time"
    with pytest.raises(ExperimentError, match=sentence):
        build(4)
