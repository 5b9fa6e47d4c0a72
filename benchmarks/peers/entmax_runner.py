"""The package entmax 1.3 at one job, in its own environment: `python entmax_runner.py '<job>'`.

The last line of the output has the processor time of a forward and a backward pass, as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import entmax
import torch
from torch import Tensor

WEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {
    "1.5-entmax": lambda scores: entmax.entmax15(scores, dim=-1),
    "1.3-entmax": lambda scores: entmax.entmax_bisect(scores, alpha=1.3, dim=-1),
    "sparsemax": lambda scores: entmax.sparsemax(scores, dim=-1),
}


def main(job: dict[str, Any]) -> dict[str, float]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows, tokens = job["shape"]
    scores = torch.randn(rows, tokens, requires_grad=True)
    gradient = torch.randn(rows, tokens)
    weights = WEIGHTS[job["weights"]]
    least = float("inf")
    for _ in range(job["passes"]):
        start = time.process_time()
        for _ in range(job["calls"]):
            scores.grad = None
            weights(scores).backward(gradient)
        least = min(least, (time.process_time() - start) / job["calls"])
    return {"microseconds": 1e6 * least}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
