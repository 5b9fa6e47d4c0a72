"""What `hardware.precision=auto` means, and where bf16 is refused: by what the processor says it can do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from attnlab.training import hardware as module
from attnlab.training.hardware import cpu_has_bfloat16

AVX2 = {"avx2": True, "avx512_f": False}
AVX512 = {"avx2": True, "avx512_f": True, "avx512_bf16": False}
AVX512_BFLOAT16 = AVX512 | {"avx512_bf16": True}
AMX = AVX512_BFLOAT16 | {"amx_bf16": True}
ARM = {"architecture": "aarch64", "neon": True, "bf16": True}
OLDER = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}


@pytest.mark.parametrize(
    ("known", "kernels", "expected"),
    [
        (AVX2, "AVX2", False),
        (AVX512, "AVX512", False),
        (AVX512_BFLOAT16, "AVX512", True),
        (AMX, "AVX512", True),
        (AVX512_BFLOAT16, "AVX2", False),
        (ARM, "DEFAULT", False),
    ],
    ids=["avx2", "avx512", "avx512_bf16", "amx", "avx512_bf16 held back", "arm"],
)
def test_bfloat16_needs_its_instructions_and_kernels_that_use_them(known, kernels, expected, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: kernels)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch, "lstm", lambda *_: None)  # this machine's oneDNN may refuse it
    assert cpu_has_bfloat16() is expected


def test_an_lstm_that_onednn_refuses_rules_bfloat16_out(monkeypatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("could not create a primitive descriptor")

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: AMX)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch, "lstm", refuse)
    assert cpu_has_bfloat16() is False


def test_the_check_draws_no_random_numbers():
    before = torch.get_rng_state()
    cpu_has_bfloat16()
    assert torch.equal(torch.get_rng_state(), before)


def test_an_older_processor_is_recognised_in_a_process_of_its_own():
    code = "from attnlab.training.hardware import cpu_has_bfloat16; print(cpu_has_bfloat16())"
    ended = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | OLDER, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "False\n"


@pytest.mark.parametrize("there", [True, False])
def test_auto_is_bf16_on_a_cpu_that_has_it(there, hardware, monkeypatch):
    monkeypatch.setattr(module, "cpu_has_bfloat16", lambda: there)
    assert hardware(precision="auto").with_precision() == hardware(precision="bf16" if there else 32)


@pytest.mark.parametrize("accelerator", ["gpu", "mps"])
def test_auto_is_32_on_a_gpu(accelerator, hardware, monkeypatch):
    monkeypatch.setattr(module, "cpu_has_bfloat16", lambda: True)
    assert hardware(precision="auto", accelerator=accelerator).with_precision().precision == 32


@pytest.mark.parametrize("precision", [32, "bf16"])
def test_a_precision_that_was_chosen_stays(precision, hardware):
    assert hardware(precision=precision).with_precision().precision == precision


def test_bf16_is_refused_where_the_device_lacks_it(hardware, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(module, "cpu_has_bfloat16", lambda: False)
    for name in ("cpu", "gpu", "mps"):
        with pytest.raises(ValueError, match=f"^precision must be 32 or auto on this machine, whose {name} does not"):
            hardware(precision="bf16", accelerator=name).check_available()
        hardware(accelerator=name).check_available()
