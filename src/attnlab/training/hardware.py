"""Hardware settings (device, processes, precision, threads), and their check on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveInt

from attnlab.errors import ExperimentError
from attnlab.training.devices import device_in_turn


def cores() -> int:
    """The logical processors that this process may use: two threads of one core count as two."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS has no affinity


def cpu_has_bfloat16() -> bool:
    """Whether this processor computes products and recurrences in bfloat16 faster than in float32.

    It needs AVX-512 with bfloat16 instructions (or AMX, which comes with them). With plain AVX-512,
    oneDNN converts in software, at less than half of float32's speed; with AVX2 it refuses a
    bfloat16 LSTM, and torch's own products are a hundred times slower. ARM was never tried.
    """
    known = torch.cpu.get_capabilities()
    has_instructions = known.get("avx512_bf16") or known.get("amx_bf16")
    if not has_instructions or not torch.backends.mkldnn.is_available():
        return False
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        return False  # ATEN_CPU_CAPABILITY can restrict torch's own products
    # ONEDNN_MAX_CPU_ISA can restrict oneDNN; the only way to find out is to run a recurrence.
    # An `nn.LSTM` would draw its weights.
    x = torch.zeros(1, 1, 1)
    weights = torch.zeros(4, 1)
    bias = torch.zeros(4)
    try:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            torch.lstm(x, (x, x), [weights, weights, bias, bias], True, 1, 0.0, False, False, True)
    except RuntimeError:
        return False
    return True


def use_plain_float32() -> None:
    """Compute in float32 alone on a GPU, whose recurrences (cuDNN's) use TF32 by default."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False


@dataclass(frozen=True)
class Hardware:
    """Where and how an experiment computes.

    All of it is explicit, because all of it may change the bits of a result.

    accelerator: the kind of device.
    devices: processes of one node, one device each.
    nodes: machines.
    strategy: `single` process; `ddp_fork` forks the others from this one (on the CPUs of one node),
        `ddp` starts them as commands.
    precision: 32, or bf16 for mixed precision (weights and sums in 32 bits, matrix products and the
        encoder's recurrences in bfloat16); auto is bf16 on processors known to be faster with it,
        else 32.
    matmul_precision: torch's setting for 32-bit matrix products on devices with a faster, less
        precise kind. It also applies to cuDNN's recurrences and convolutions: with `highest` they
        never use TF32.
    threads: processor threads that one process uses for one operation.
    fast: whether a training takes the faster layers of `attnlab.model.fast`, whose numbers are
        those of the plain ones but for the order of sums.
    graphs: whether a training step's pass over the model is recorded as a CUDA graph, once for
        each shape of a batch, and started as a whole; for one GPU.
    workers: data loading processes of each training process; 0 loads in the training process.
    bucket_pool: number of batches whose pairs are sorted by length together; None sorts a whole
        epoch. `training.batching.pool` refers to it.
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
    graphs: bool = False
    fast: bool = True

    def __post_init__(self) -> None:
        if self.graphs and (self.accelerator != "gpu" or self.strategy != "single"):
            raise ValueError(
                "graphs must be false but with accelerator gpu and strategy single, got "
                f"accelerator {self.accelerator} and strategy {self.strategy}"
            )
        if self.strategy == "single" and self.processes > 1:
            raise ValueError(
                f"strategy single has one process, but there are {self.devices} device(s) on "
                f"{self.nodes} node(s); choose strategy ddp (or ddp_fork on one node), or devices "
                "1 and nodes 1"
            )

    @property
    def processes(self) -> int:
        """How many processes train together, one for each device of each node."""
        return self.devices * self.nodes

    def with_precision(self) -> Hardware:
        """The same hardware with precision 32 or bf16 in place of `auto`.

        It depends on the processor's instructions, so that a machine always chooses the same. A GPU
        gets 32, for the gain of bfloat16 there was never measured.
        """
        if self.precision != "auto":
            return self
        if self.accelerator == "cpu" and cpu_has_bfloat16():
            return replace(self, precision="bf16")
        return replace(self, precision=32)

    def apply(self) -> None:
        """Apply the settings that torch has for the whole process.

        Numbers below 1e-38 become zero: monotonic, local and sparse attention make many of them
        from long sources, with which a processor computes many times as long.
        """
        torch.set_flush_denormal(True)  # before torch starts threads, which inherit it
        torch.set_num_threads(self.threads)
        torch.set_float32_matmul_precision(self.matmul_precision)
        # torch refuses to mix these older settings with the newer `fp32_precision`.
        torch.backends.cudnn.allow_tf32 = self.matmul_precision != "highest"

    def take_turn(self) -> None:
        """Compute on a GPU that no job of another process has, where there are enough of them.

        For jobs of a sweep, which would all take the first one. Several processes of one job find
        their GPUs by themselves.
        """
        if self.accelerator == "gpu" and self.strategy == "single":
            torch.cuda.set_device(device_in_turn(torch.cuda.device_count()))

    def check_sweep(self) -> None:
        """Raise ExperimentError if this cannot be used in a sweep (`-m`)."""
        if self.strategy == "ddp":
            raise ExperimentError(
                "hardware.strategy ddp starts its other processes with the command of the first "
                "one, so with -m each would start the whole sweep again; choose "
                "hardware.strategy=ddp_fork (CPU only) or hardware.devices=1 with "
                "hardware.strategy=single, or start one command for each point, without -m"
            )

    def check_available(self) -> None:
        """Raise ExperimentError if this machine lacks the devices, CPU bfloat16, or enough cores.

        There must be a core for each thread. With more threads than cores, each small operation
        waits for all threads, which is slower than one thread.
        """
        available = {
            "cpu": True,
            "gpu": torch.cuda.is_available(),
            "mps": torch.backends.mps.is_available(),
        }
        if not available[self.accelerator]:
            names = ", ".join(name for name, there in available.items() if there)
            raise ExperimentError(
                f"hardware.accelerator {self.accelerator} is not on this machine; it has: {names}"
            )
        if self.precision == "bf16" and self.accelerator == "cpu" and not cpu_has_bfloat16():
            raise ExperimentError(
                "hardware.precision must be 32 or auto on this machine, whose CPU has no bfloat16, "
                "got bf16"
            )
        if self.threads > cores():
            raise ExperimentError(
                f"hardware.threads must be at most {cores()} on this machine, got {self.threads}"
            )

    @property
    def repeatable(self) -> str:
        """How exactly another run repeats a result, in words."""
        if self.accelerator == "cpu":
            return (
                f"to the byte, on the same machine with {self.threads} thread(s) and "
                f"{self.devices} process(es)"
            )
        return f"not to the byte: a {self.accelerator} adds numbers in varying order"

    @property
    def device(self) -> str:
        """torch's name of the device for work in one process, such as evaluation."""
        return {"cpu": "cpu", "gpu": "cuda", "mps": "mps"}[self.accelerator]
