"""Gain of bfloat16 on this processor and on older ones, for recurrences and products.

    python benchmarks/precision.py

Both are measured in both precisions. Each row is a process of its own; those of older processors
restrict oneDNN and torch. A recurrence reads 64 sequences of 20 steps, 256 units, forward and
backward. Milliseconds of processor time, the median of five runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable

from matrix_products import median_seconds
from process_cost import ONE_THREAD
from results import Row, report

PROCESSORS = {
    "as it is": {},
    "AVX-512 alone": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
}
PRODUCTS = ((64, 512, 2048), (1280, 512, 6000))


def measure() -> Row:
    """Milliseconds in float32 / bfloat16."""
    import torch

    tasks: dict[str, Callable[[], object]] = {}
    for name in ("LSTM", "GRU", "RNN"):
        layer, x = getattr(torch.nn, name)(256, 256, batch_first=True), torch.randn(64, 20, 256)
        tasks[name] = lambda layer=layer, x=x: layer(x)[0].float().sum().backward()  # type: ignore[misc]
    for m, k, n in PRODUCTS:
        one, other = torch.randn(m, k), torch.randn(k, n)
        tasks[f"({m}×{k})·({k}×{n})"] = lambda one=one, other=other: one @ other  # type: ignore[misc]
    return {
        name: " / ".join(_milliseconds(task, half) for half in (False, True))
        for name, task in tasks.items()
    }


def _milliseconds(task: Callable[[], object], half: bool) -> str:
    import torch

    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        try:
            return f"{1000 * median_seconds(task, 5):.1f}"
        except RuntimeError:
            return "refused"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--here", action="store_true", help="print one row of this process, as JSON"
    )
    if parser.parse_args().here:
        print(json.dumps(measure()))
        return
    rows = []
    for name, held_back in PROCESSORS.items():
        command = [sys.executable, __file__, "--here"]
        ended = subprocess.run(
            command,
            env=os.environ | ONE_THREAD | held_back,
            capture_output=True,
            text=True,
            check=True,
        )
        rows.append({"processor": name, **json.loads(ended.stdout)})
    report("precision", rows, ["milliseconds, float32 / bfloat16"])


if __name__ == "__main__":
    main()
