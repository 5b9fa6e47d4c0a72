"""What a validation leaves free in the heap is the system's again when training goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

HOLES = """
import ctypes
import psutil
from attnlab.training.freed_memory import ReturnFreedMemory

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
def test_training_goes_on_without_a_validations_free_memory():
    found = subprocess.run([sys.executable, "-c", HOLES], check=False, capture_output=True, text=True)
    if "no glibc" in found.stderr:
        pytest.skip("this C library cannot trim its heap")
    assert found.returncode == 0, found.stderr
    assert float(found.stdout) > 150
