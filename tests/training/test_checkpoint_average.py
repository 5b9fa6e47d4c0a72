"""The mean of checkpoints' weights, and which checkpoints are the best."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from pytorch_lightning.callbacks import LambdaCallback

from attnlab.errors import ExperimentError
from attnlab.training.checkpoint_average import averaged_weights, best_checkpoints
from attnlab.training.spool import MetricSpool, SpoolLogger
from attnlab.training.trainer import build_trainer


def spool(folder: Path) -> SpoolLogger:
    return SpoolLogger(MetricSpool(folder / "metrics.jsonl"))


def written(folder: Path, name: str, step: int, state: dict[str, torch.Tensor]) -> Path:
    torch.save({"state_dict": state, "global_step": step}, folder / name)
    return folder / name


def test_the_mean_is_that_of_numpy(tmp_path):
    random = np.random.default_rng(0)
    values = (random.standard_normal((3, 4, 5)) * 10.0 ** random.integers(-6, 6, (3, 4, 5))).astype(np.float32)
    paths = [
        written(tmp_path, f"{i}.ckpt", 10 - i, {"model.a.weight": torch.from_numpy(value)})
        for i, value in enumerate(values)
    ]
    weights, step = averaged_weights(paths)
    assert set(weights) == {"a.weight"}
    assert weights["a.weight"].dtype == torch.float32
    np.testing.assert_array_equal(weights["a.weight"].numpy(), values.astype(np.float64).mean(0).astype(np.float32))
    assert step == 10  # that of the first


def test_sums_do_not_round(tmp_path):
    """In float32, 2^24 + 1 is 2^24."""
    values = [2.0**24, 1.0, 1.0, 2.0]
    paths = [written(tmp_path, f"{i}.ckpt", 1, {"model.w": torch.tensor([v])}) for i, v in enumerate(values)]
    assert averaged_weights(paths)[0]["w"].item() == 2.0**22 + 1


def test_one_checkpoint_gives_its_own_bits(tmp_path):
    state = {"model.w": torch.randn(50) * 1e-20, "model.h": torch.randn(9).bfloat16()}
    weights, step = averaged_weights([written(tmp_path, "one.ckpt", 7, state)])
    assert step == 7
    for name, value in weights.items():
        assert value.dtype == state[f"model.{name}"].dtype
        assert torch.equal(value, state[f"model.{name}"])


def test_counters_are_not_averaged_and_only_the_model_counts(tmp_path):
    states = [
        {"model.w": torch.full((2,), float(n)), "model.count": torch.tensor(n), "model.on": torch.tensor(n == 4)}
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
def test_the_best_are_those_of_the_curve(monitor, lower_is_better, train, settings, hardware):
    choices = {"max_steps": 24, "validate_every": 4, "monitor": monitor, "keep_best": 4, "average_checkpoints": 3}
    run = train(**choices, callbacks=[planted_chrf([3, 9, 1, 7, 8, 2])])
    curve = run.values(run.module.settings.monitored_metric)
    assert len(set(curve)) == 6  # otherwise this test could not tell
    ranked = sorted(range(6), key=curve.__getitem__, reverse=not lower_is_better)
    names = [f"step={4 * (i + 1)}.ckpt" for i in ranked]
    folder = run.folder / "checkpoints"
    assert best_checkpoints(run.checkpoint, 1) == [folder / names[0]]
    assert best_checkpoints(run.checkpoint, 3) == [folder / name for name in names[:3]]
    assert best_checkpoints(run.checkpoint, 9) == [folder / name for name in names[:4]]  # as many as there are

    # Where training ran in other processes, the callback knows its best checkpoint and no other.
    _, elsewhere = build_trainer(settings(**choices), hardware(), 3, folder, spool(run.folder))
    elsewhere.best_model_path = run.checkpoint.best_model_path
    assert best_checkpoints(elsewhere, 3) == [folder / name for name in names[:3]]

    weights, step = averaged_weights(best_checkpoints(run.checkpoint, 3))
    assert step == 4 * (ranked[0] + 1)
    run.module.model.load_state_dict(weights)  # it is a model like the others


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("damage", ["some bytes", "cut short", "gone"])
def test_a_model_is_made_of_no_damaged_checkpoint(damage, count, train):
    run = train(max_steps=8, validate_every=4, keep_best=2, average_checkpoints=2)
    path = best_checkpoints(run.checkpoint, count)[-1]
    content = bytearray(path.read_bytes())
    middle = slice(
        len(content) // 2, len(content) // 2 + 500
    )  # more than the pads between its parts, without checksums
    content[middle] = bytes(byte ^ 1 for byte in content[middle])
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:100] if damage == "cut short" else content)
    with pytest.raises(ExperimentError, match=rf"{path.name}, of which the model is made, is damaged: .*rerun=true"):
        best_checkpoints(run.checkpoint, count)


def test_more_than_are_kept_cannot_be_averaged(settings):
    with pytest.raises(
        ValueError,
        match=r"^average_checkpoints must be at most keep_best, .* got 3 and keep_best 2; choose "
        r"training\.keep_best=3",
    ):
        settings(keep_best=2, average_checkpoints=3)
    assert settings(keep_best=3, average_checkpoints=3).average_checkpoints == 3


def test_a_training_too_short_for_the_average_is_refused(settings, hardware, tmp_path):
    """Nine steps, validated every four, are validated three times: after the ninth as well."""

    def build(average: int) -> None:
        chosen = settings(max_steps=9, validate_every=4, keep_best=5, average_checkpoints=average)
        build_trainer(chosen, hardware(), 3, tmp_path, spool(tmp_path))

    build(3)
    sentence = r"^training\.average_checkpoints .* got 4, but 9 steps are validated 3 time"
    with pytest.raises(ExperimentError, match=sentence):
        build(4)
