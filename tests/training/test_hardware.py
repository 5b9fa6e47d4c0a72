"""Hardware settings that this machine cannot use: what reaches torch, and what is refused for a GPU."""

from __future__ import annotations

import pytest
import pytorch_lightning as pl
import torch

from attnlab.training.spool import MetricSpool, SpoolLogger
from attnlab.training.trainer import build_trainer


@pytest.fixture
def torch_settings():
    before = torch.get_num_threads(), torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_num_threads(before[0])
    torch.set_float32_matmul_precision(before[1])
    torch.backends.cudnn.allow_tf32 = before[2]


@pytest.mark.usefixtures("torch_settings")
@pytest.mark.parametrize(("precision", "tf32"), [("highest", False), ("high", True), ("medium", True)])
def test_cudnn_uses_tf32_only_where_matrix_products_may(precision, tf32, hardware):
    cudnn = torch.backends.cudnn
    cudnn.allow_tf32 = not tf32
    hardware(matmul_precision=precision).apply()
    assert cudnn.allow_tf32 == torch.backends.cuda.matmul.allow_tf32 == tf32
    with cudnn.flags():  # raises where the older and the newer settings of torch disagree
        pass
    newer = getattr(cudnn, "rnn", None)  # what cuDNN's recurrences go by since torch 2.9
    if hasattr(newer, "fp32_precision"):
        assert (newer.fp32_precision == cudnn.conv.fp32_precision == "tf32") == tf32


@pytest.mark.parametrize("accelerator", ["gpu", "mps"])
def test_several_jobs_at_a_time_on_a_gpu_are_refused(accelerator, hardware, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr("attnlab.training.hardware.cores", lambda: 8)
    hardware(accelerator=accelerator).check_available(jobs=1)
    with pytest.raises(ValueError, match=f"accelerator {accelerator} runs one job .* got 2; choose launcher.workers=1"):
        hardware(accelerator=accelerator).check_available(jobs=2)
    hardware().check_available(jobs=2)


def test_ddp_is_refused_in_a_sweep(hardware):
    with pytest.raises(ValueError, match=r"strategy ddp starts .* choose hardware.strategy=ddp_fork"):
        hardware(strategy="ddp", devices=2).check_sweep()
    hardware(strategy="ddp_fork", devices=2).check_sweep()
    hardware().check_sweep()


@pytest.mark.parametrize(
    ("choices", "received"),
    [
        ({"accelerator": "gpu"}, ("gpu", 1, 1, "auto", "32-true")),
        ({"accelerator": "gpu", "precision": "bf16"}, ("gpu", 1, 1, "auto", "bf16-mixed")),
        ({"accelerator": "mps"}, ("mps", 1, 1, "auto", "32-true")),
        ({"accelerator": "gpu", "devices": 4, "nodes": 2, "strategy": "ddp"}, ("gpu", 4, 2, "ddp", "32-true")),
    ],
    ids=["gpu", "bf16", "mps", "slurm"],
)
def test_lightning_receives_the_devices_of_a_gpu_choice(choices, received, hardware, settings, tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(pl, "Trainer", lambda **arguments: given.update(arguments))
    build_trainer(settings(), hardware(**choices), 5, tmp_path, SpoolLogger(MetricSpool(tmp_path / "metrics.jsonl")))
    names = ("accelerator", "devices", "num_nodes", "strategy", "precision")
    assert tuple(given[name] for name in names) == received
