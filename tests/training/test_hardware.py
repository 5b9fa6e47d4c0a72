"""Hardware settings that this machine cannot use: what reaches torch, and what is refused for a GPU."""

from __future__ import annotations

import pytest
import torch


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
