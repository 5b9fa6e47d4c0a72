"""What an experiment runs on."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveInt


def cores() -> int:
    """The processors that this process may use, as the system counts them: two threads of one core are two."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_has_bfloat16() -> bool:
    """Whether this processor computes products and recurrences in bfloat16 faster than in float32.

    It needs AVX-512 with bfloat16 instructions (or AMX, which comes with them). With plain AVX-512, oneDNN converts in
    software, at less than half of float32's speed; with AVX2 it refuses a bfloat16 LSTM, and torch's own products are
    a hundred times slower. On ARM nobody has tried it.
    """
    known = torch.cpu.get_capabilities()
    if not torch.backends.mkldnn.is_available() or not (known.get("avx512_bf16") or known.get("amx_bf16")):
        return False
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        return False  # ATEN_CPU_CAPABILITY can say less than the processor has
    # ONEDNN_MAX_CPU_ISA can do the same to oneDNN.
    x, weights, bias = torch.zeros(1, 1, 1), torch.zeros(4, 1), torch.zeros(4)  # an `nn.LSTM` would draw its weights
    try:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            torch.lstm(x, (x, x), [weights, weights, bias, bias], True, 1, 0.0, False, False, True)
    except RuntimeError:
        return False
    return True


def _has_bfloat16(accelerator: str) -> bool:
    if accelerator == "gpu":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return accelerator == "cpu" and cpu_has_bfloat16()


# Loader workers mostly wait; thousands of them would stop the machine.
WORKERS_A_CORE = 8


@dataclass(frozen=True)
class Hardware:
    """Where and how the sums are done; all of it is explicit, for all of it may change the bits.

    devices: processes of one node, one device each.
    strategy: `single` process; `ddp_fork` forks the others from this one, `ddp` starts them as commands.
    precision: 32, or bf16 for mixed precision (weights and sums in 32 bits, matrix products and the encoder's
        recurrences in bfloat16); auto is bf16 where that is known to be faster, else 32 (see `with_precision`).
    matmul_precision: torch's setting for 32-bit matrix products on devices that have a faster, rougher kind. cuDNN's
        recurrences and convolutions follow it: with `highest` they never use TF32.
    threads: of one process, for one operation.
    workers: processes that load data beside each training process; 0 loads in the process itself.
    bucket_pool: batches whose pairs are sorted by length together; None sorts a whole epoch. (`training.batching.pool`
        takes it from here.)
    """

    accelerator: Literal["cpu", "gpu", "mps"]
    devices: PositiveInt
    nodes: PositiveInt
    strategy: Literal["single", "ddp", "ddp_fork"]
    precision: Literal[32, "bf16", "auto"]
    matmul_precision: Literal["highest", "high", "medium"]
    threads: PositiveInt
    workers: NonNegativeInt
    bucket_pool: PositiveInt | None = None

    def __post_init__(self) -> None:
        if self.strategy == "single" and self.devices * self.nodes > 1:
            raise ValueError(
                f"strategy single has one process, but there are {self.devices} device(s) on {self.nodes} node(s); "
                "choose strategy ddp (or ddp_fork on one node), or devices 1 and nodes 1"
            )
        if self.strategy == "ddp_fork" and self.nodes > 1:
            raise ValueError(f"strategy ddp_fork cannot leave its node, got nodes {self.nodes}; choose strategy ddp")
        if self.strategy == "ddp_fork" and self.accelerator != "cpu":
            raise ValueError(
                f"strategy ddp_fork is for the CPU, got accelerator {self.accelerator}; choose strategy ddp"
            )

    def with_precision(self) -> Hardware:
        """The same hardware, its precision 32 or bf16: what `auto` means on this machine.

        It depends on what the processor can do, never on a measurement, so that a machine always chooses the same. A
        GPU gets 32: nobody has measured what bfloat16 gains there.
        """
        if self.precision != "auto":
            return self
        return replace(self, precision="bf16" if self.accelerator == "cpu" and cpu_has_bfloat16() else 32)

    def apply(self) -> None:
        """Set what torch keeps for the whole process."""
        torch.set_num_threads(self.threads)
        torch.set_float32_matmul_precision(self.matmul_precision)
        # By torch's older pair of settings, which it refuses to mix with the newer `fp32_precision`.
        torch.backends.cudnn.allow_tf32 = self.matmul_precision != "highest"

    def check_sweep(self) -> None:
        """Refuse what cannot be a point of a sweep (`-m`); raises ValueError."""
        if self.strategy == "ddp":
            raise ValueError(
                "strategy ddp starts its other processes with the command of the first one, and with -m each of them "
                "would lead the whole sweep again; choose hardware.strategy=ddp_fork (CPU only) or hardware.devices=1 "
                "with hardware.strategy=single, or start one command for each point, without -m"
            )

    def check_available(self, jobs: int = 1) -> None:
        """Refuse missing devices, several jobs on one device, and more threads than there are cores; raises ValueError.

        Two threads that take turns are slower than one: each small operation waits for both. Loader workers, which
        mostly wait, and the processes of several GPUs are not counted.

        jobs: of a sweep, that run at the same time.
        """
        available = {
            "cpu": True,
            "gpu": torch.cuda.is_available(),
            "mps": torch.backends.mps.is_available(),
        }
        if not available[self.accelerator]:
            names = ", ".join(name for name, there in available.items() if there)
            raise ValueError(f"accelerator {self.accelerator} is not on this machine; it has: {names}")
        if self.precision == "bf16" and not _has_bfloat16(self.accelerator):
            raise ValueError(
                f"precision must be 32 or auto on this machine, whose {self.accelerator} does not compute in bfloat16, "
                "got bf16"
            )
        if self.accelerator == "gpu" and self.devices > torch.cuda.device_count():
            raise ValueError(f"devices must be at most {torch.cuda.device_count()} on this machine, got {self.devices}")
        if self.accelerator != "cpu" and jobs > 1:
            raise ValueError(
                f"accelerator {self.accelerator} runs one job of a sweep at a time, for all of them would use the same "
                f"device, got {jobs}; choose launcher.workers=1; with several GPUs, start one command for each of "
                "them, with its number in CUDA_VISIBLE_DEVICES"
            )
        most_workers = WORKERS_A_CORE * cores()
        if self.workers > most_workers:
            raise ValueError(
                f"workers must be at most {most_workers} on this machine, got {self.workers}; choose fewer"
            )
        processes = jobs * (self.devices if self.accelerator == "cpu" else 1)
        if processes * self.threads > cores():
            raise ValueError(
                f"threads must be at most {cores() // processes} with {processes} process(es) at a time on the "
                f"{cores()} core(s) of this machine, got {self.threads}"
                if processes <= cores()
                else f"threads: {processes} processes at a time need as many cores, but this machine has {cores()}; "
                f"choose fewer devices, or a sweep with fewer jobs at a time"
            )

    @property
    def repeatable(self) -> str:
        """How far another run may be trusted to give the same bytes, in words."""
        if self.accelerator == "cpu":
            return f"to the byte, on the same machine with {self.threads} thread(s) and {self.devices} process(es)"
        return f"not to the byte: a {self.accelerator} adds numbers in no fixed order"

    @property
    def device(self) -> str:
        """torch's name of the device for work in one process, such as evaluation."""
        return {"cpu": "cpu", "gpu": "cuda", "mps": "mps"}[self.accelerator]
