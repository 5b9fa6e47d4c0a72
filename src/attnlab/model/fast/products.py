"""Products of matrices by oneDNN, through the operators that torch's own compiler uses."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import linear


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b as torch's `linear`, without a gradient.

    x (M, I), weight (O, I), bias (O,) -> (M, O).

    In single precision on a CPU that is not Intel's by oneDNN, which torch itself asks in bfloat16
    only: its own choice, MKL, keeps to a slower path there. On Intel's, MKL's gradients are the
    faster ones. The sums are the same but for the order of their terms.
    """
    is_for_onednn = x.device.type == "cpu" and x.dtype == torch.float32 and has_onednn()
    if is_for_onednn and x.numel() > 0 and not is_intel():
        return onednn_product(x, weight, bias)
    return linear(x, weight, bias)


def onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As `product`, by oneDNN whatever the processor; x must have rows."""
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        # With a slice of columns oneDNN takes a thousand times as long
        weight = weight.contiguous()
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


@cache
def is_intel() -> bool:
    """Whether the processor is one of Intel's."""
    described = Path("/proc/cpuinfo")  # Linux; Windows names the maker itself
    text = described.read_text() if described.is_file() else platform.processor()
    return "GenuineIntel" in text


def has_onednn(dtype: torch.dtype = torch.float32) -> bool:
    """Whether torch comes with oneDNN, its operators, and support for the type.

    The operators are those by which torch's compiler reaches oneDNN.
    """
    if not (
        torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    ):
        return False
    return dtype is torch.float32 or (
        dtype is torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
