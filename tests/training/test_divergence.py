"""Trainings that diverge or run out of memory.

They end with an error that names a remedy, and save no broken checkpoint.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import pytorch_lightning as pl
import torch

from attnlab.config.part import Part
from attnlab.errors import ExperimentError
from attnlab.experiment.training import make_module
from attnlab.training.checkpoints import checkpoint_step
from attnlab.training.processes import explain_out_of_memory


class Multiply(pl.Callback):
    """Multiplies all weights before a step."""

    def __init__(self, step, factor):
        self.step, self.factor = step, factor

    def on_train_batch_start(self, trainer, module, *args):
        if trainer.global_step == self.step:
            with torch.no_grad():
                for weight in module.model.parameters():
                    weight *= self.factor


@pytest.mark.processor
@pytest.mark.parametrize("precision", [32, pytest.param("bf16", marks=pytest.mark.bfloat16)])
def test_training_with_a_nan_loss_stops_before_the_step(train, precision):
    choices = {
        "max_steps": 12,
        "validate_every": 4,
        "gradient_clip": 0.0,
        "optimizer": Part(torch.optim.Adam, lr=0.02, fused=True),
    }
    with pytest.raises(ExperimentError) as stopped:
        train(
            **choices,
            on={"precision": precision},
            callbacks=[Multiply(6, float("inf"))],
            folder="broken",
        )
    sentence = (
        "training diverged in step 7 (epoch 2): the loss is nan; try a smaller "
        "training.optimizer.lr"
    )
    assert str(stopped.value).startswith(sentence)


def test_training_resumes_exactly_from_the_checkpoint_before_the_divergence(train, tmp_path):
    whole = train(max_steps=12, validate_every=4)
    with pytest.raises(ExperimentError, match="in step 7 "):
        train(
            max_steps=12, validate_every=4, callbacks=[Multiply(6, float("nan"))], folder="broken"
        )
    assert checkpoint_step(tmp_path / "broken" / "checkpoints" / "last.ckpt") == 4
    again = train(max_steps=12, validate_every=4, folder="broken", resume=True)
    for name, value in whole.module.model.state_dict().items():
        assert torch.equal(value, again.module.model.state_dict()[name]), name


class Spoil(pl.Callback):
    """Sets a weight to NaN after a step with a finite gradient."""

    def on_train_batch_end(self, trainer, module, *args):
        if trainer.global_step == 3:
            with torch.no_grad():
                module.model.encoder.embedding.weight[5] = torch.nan


@pytest.mark.parametrize("save_every_minutes", [None, 1e-9])
def test_training_with_nan_weights_writes_no_checkpoint(
    train, save_every_minutes, tmp_path, monkeypatch
):
    # As on an accelerator, where gradients are checked in logged steps only.
    monkeypatch.setattr("attnlab.training.module.LabModule.check_finite", lambda *args: None)
    with pytest.raises(
        ExperimentError, match=r"diverged before step [45]: model\.encoder\.embedding\.weight is no"
    ):
        train(
            max_steps=12,
            validate_every=4,
            callbacks=[Spoil()],
            save_every_minutes=save_every_minutes,
            folder="broken",
        )
    saved = list((tmp_path / "broken" / "checkpoints").glob("*.ckpt"))
    for path in saved:
        state = torch.load(path, weights_only=True)["state_dict"]
        assert all(bool(value.isfinite().all()) for value in state.values())
    assert bool(saved) == (save_every_minutes is not None)


def test_model_that_fits_into_no_memory_is_refused_when_it_is_built():
    def too_large(**sizes):
        return torch.empty(10**17)

    experiment = SimpleNamespace(
        seed=1, model=too_large, padding=None, task=SimpleNamespace(sizes=lambda data: {})
    )
    with pytest.raises(ExperimentError, match=r"^out of memory: .*; make the sizes of model small"):
        make_module(experiment, None)


def test_out_of_memory_error_reports_what_to_make_smaller():
    with (
        pytest.raises(ExperimentError, match=r"^out of memory: .*; try less$"),
        explain_out_of_memory("try less"),
    ):
        torch.empty(10**17)
    with (
        pytest.raises(RuntimeError, match="shapes cannot be multiplied"),
        explain_out_of_memory("try less"),
    ):
        torch.ones(2, 3) @ torch.ones(2, 3)
