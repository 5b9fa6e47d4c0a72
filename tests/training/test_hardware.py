"""Hardware settings: what reaches torch and Lightning, what is refused, and `precision=auto`."""

from __future__ import annotations

import pytest
import torch

from attnlab.data.datamodule import EpochLengths
from attnlab.errors import ExperimentError
from attnlab.training import hardware as module
from attnlab.training.hardware import cpu_has_bfloat16
from attnlab.training.spool import MetricSpool
from attnlab.training.trainer import build_trainer


@pytest.fixture
def torch_settings():
    before = (
        torch.get_num_threads(),
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.allow_tf32,
    )
    yield
    torch.set_num_threads(before[0])
    torch.set_float32_matmul_precision(before[1])
    torch.backends.cudnn.allow_tf32 = before[2]


@pytest.mark.usefixtures("torch_settings")
@pytest.mark.parametrize(
    ("precision", "tf32"), [("highest", False), ("high", True), ("medium", True)]
)
def test_hardware_apply_sets_threads_and_tf32_of_products_and_cudnn(precision, tf32, hardware):
    cudnn = torch.backends.cudnn
    cudnn.allow_tf32 = not tf32
    hardware(matmul_precision=precision, threads=2).apply()
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (2, precision)
    assert cudnn.allow_tf32 == torch.backends.cuda.matmul.allow_tf32 == tf32
    with cudnn.flags():  # raises where the older and the newer settings of torch disagree
        pass
    newer = getattr(cudnn, "rnn", None)  # what cuDNN's recurrences go by since torch 2.9
    if hasattr(newer, "fp32_precision"):
        assert (newer.fp32_precision == cudnn.conv.fp32_precision == "tf32") == tf32


@pytest.mark.usefixtures("torch_settings")
def test_hardware_apply_makes_zeros_of_numbers_that_slow_the_processor_down(hardware):
    def product():
        return (torch.tensor(1e-30) * torch.tensor(1e-12)).item()

    assert 0 < product() < torch.finfo(torch.float32).tiny
    hardware().apply()
    assert product() == 0


def test_hardware_with_ddp_is_refused_in_a_sweep(hardware):
    with pytest.raises(
        ExperimentError, match=r"hardware.strategy ddp starts .* choose hardware.strategy=ddp_fork"
    ):
        hardware(strategy="ddp", devices=2).check_sweep()
    hardware(strategy="ddp_fork", devices=2).check_sweep()
    hardware().check_sweep()


def test_hardware_with_more_threads_than_cores_is_refused(hardware, monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: 4)
    hardware(threads=4).check_available()
    with pytest.raises(
        ExperimentError, match=r"hardware\.threads must be at most 4 on this machine, got 5"
    ):
        hardware(threads=5).check_available()


@pytest.mark.processor
@pytest.mark.parametrize(
    ("choices", "received"),
    [
        ({"accelerator": "gpu"}, ("gpu", 1, 1, "auto", "32-true")),
        ({"accelerator": "gpu", "precision": "bf16"}, ("gpu", 1, 1, "auto", "bf16-mixed")),
        ({"accelerator": "mps"}, ("mps", 1, 1, "auto", "32-true")),
        (
            {"accelerator": "gpu", "devices": 4, "nodes": 2, "strategy": "ddp"},
            ("gpu", 4, 2, "ddp", "32-true"),
        ),
    ],
    ids=["gpu", "bf16", "mps", "slurm"],
)
def test_lightning_receives_the_devices_of_a_gpu_choice(
    choices, received, hardware, settings, tmp_path, monkeypatch
):
    given = {}
    monkeypatch.setattr(
        "attnlab.training.trainer.SupervisedTrainer", lambda **arguments: given.update(arguments)
    )
    spool = MetricSpool(tmp_path / "metrics.jsonl")
    build_trainer(
        settings(),
        hardware(**choices),
        epochs=EpochLengths.all_alike(5),
        checkpoints=tmp_path,
        spool=spool,
    )
    names = ("accelerator", "devices", "num_nodes", "strategy", "precision")
    assert tuple(given[name] for name in names) == received


def test_hardware_with_contradictory_settings_is_refused(hardware):
    with pytest.raises(
        ValueError, match=r"strategy single has one process, but there are 2 device\(s\) on 1 node"
    ):
        hardware(devices=2)
    with pytest.raises(ValueError, match=r"strategy single .* on 2 node"):
        hardware(nodes=2)
    with pytest.raises(ValueError, match="graphs must be false but with accelerator gpu"):
        hardware(graphs=True)
    with pytest.raises(ValueError, match="got accelerator gpu and strategy ddp"):
        hardware(graphs=True, accelerator="gpu", strategy="ddp", devices=2)
    assert hardware(graphs=True, accelerator="gpu").graphs
    assert hardware(strategy="ddp_fork", devices=2).device == "cpu"
    assert hardware(accelerator="gpu").device == "cuda"


def test_hardware_with_missing_devices_is_refused(hardware, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    hardware().check_available()
    for name in ("gpu", "mps"):
        with pytest.raises(
            ExperimentError,
            match=f"hardware.accelerator {name} is not on this machine; it has: cpu$",
        ):
            hardware(accelerator=name).check_available()


# --- precision

AVX2 = {"avx2": True, "avx512_f": False}
AVX512 = {"avx2": True, "avx512_f": True, "avx512_bf16": False}
AVX512_BFLOAT16 = AVX512 | {"avx512_bf16": True}
AMX = AVX512_BFLOAT16 | {"amx_bf16": True}
ARM = {"architecture": "aarch64", "neon": True, "bf16": True}


@pytest.mark.processor
@pytest.mark.parametrize(
    ("known", "kernels", "lstm_fails", "expected"),
    [
        (AVX2, "AVX2", False, False),
        (AVX512, "AVX512", False, False),
        (AVX512_BFLOAT16, "AVX512", False, True),
        (AMX, "AVX512", False, True),
        (AMX, "AVX512", True, False),
        (AVX512_BFLOAT16, "AVX2", False, False),
        (ARM, "DEFAULT", False, False),
    ],
    ids=["avx2", "avx512", "avx512_bf16", "amx", "oneDNN restricted", "torch restricted", "arm"],
)
def test_cpu_has_bfloat16_requires_instructions_and_kernels(
    known, kernels, lstm_fails, expected, monkeypatch
):
    def lstm(*_: object) -> None:
        if lstm_fails:
            raise RuntimeError("could not create a primitive descriptor")

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: kernels)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch, "lstm", lstm)
    assert cpu_has_bfloat16() is expected


@pytest.mark.processor
def test_precision_bf16_is_refused_on_a_cpu_without_it(hardware, monkeypatch):
    monkeypatch.setattr(module, "cpu_has_bfloat16", lambda: False)
    with pytest.raises(
        ExperimentError, match="must be 32 or auto on this machine, whose CPU has no bfloat16"
    ):
        hardware(precision="bf16").check_available()
    hardware().check_available()


@pytest.mark.processor
@pytest.mark.parametrize(
    ("accelerator", "has_bfloat16", "given", "expected"),
    [
        ("cpu", True, "auto", "bf16"),
        ("cpu", False, "auto", 32),
        ("gpu", True, "auto", 32),
        ("mps", True, "auto", 32),
        ("cpu", True, 32, 32),
        ("cpu", False, "bf16", "bf16"),
    ],
)
def test_precision_auto_is_bf16_only_on_a_cpu_that_has_it(
    accelerator, has_bfloat16, given, expected, hardware, monkeypatch
):
    monkeypatch.setattr(module, "cpu_has_bfloat16", lambda: has_bfloat16)
    chosen = hardware(precision=given, accelerator=accelerator)
    assert chosen.with_precision() == hardware(precision=expected, accelerator=accelerator)
