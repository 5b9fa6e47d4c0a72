"""Freed memory is returned to the system, and running out of memory is explained."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from attnlab.errors import ExperimentError
from attnlab.training.memory import explain_out_of_memory

HOLES = """
import ctypes
import psutil
from attnlab.training.memory import ReturnFreedMemory

if not hasattr(ctypes.CDLL(None), "malloc_trim"):
    raise SystemExit("no glibc")

def held():
    return psutil.Process().memory_info().rss / 1e6

callback = ReturnFreedMemory()
blocks = [bytearray(50_000) for _ in range(4_000)]  # 200 MB in blocks that glibc takes from its heap
del blocks[:-1]  # the last one stands at the heap's end
callback.on_train_batch_start()
before = held()
callback.on_validation_end()
callback.on_train_batch_start()
print(before - held())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library's heap is glibc's on Linux only")
def test_memory_freed_by_a_validation_is_returned_before_the_next_step():
    found = subprocess.run([sys.executable, "-c", HOLES], check=False, capture_output=True, text=True)
    if "no glibc" in found.stderr:
        pytest.skip("this C library cannot trim its heap")
    assert found.returncode == 0, found.stderr
    assert float(found.stdout) > 150


def test_out_of_memory_error_reports_what_to_make_smaller():
    asked = r"^out of memory \(while allocating a tensor of \d+ bytes\); try less$"
    with pytest.raises(ExperimentError, match=asked), explain_out_of_memory("try less"):
        torch.empty(10**17)
    with pytest.raises(ExperimentError, match=r"^out of memory; try less$"), explain_out_of_memory("try less"):
        raise MemoryError


def test_errors_other_than_out_of_memory_are_not_changed():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), explain_out_of_memory("try less"):
        torch.ones(2, 3) @ torch.ones(2, 3)
