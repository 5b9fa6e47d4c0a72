"""Operations that torch does slowly on some CPUs, beside what attnlab does in their place.

    python benchmarks/cpu_operations.py [--rounds 5]

Each has the shapes of Multi30k's models: 64 sentences of 14 tokens, on one thread. The least
processor time of the rounds counts, each the mean of ten calls.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

from arguments import at_least_one
from attnlab.model.dropout import Dropout
from process_cost import limit_threads
from results import Row, report

Call = Callable[[], object]
SENTENCES, TOKENS = 64, 14
CALLS = 10


def recurrence(inputs: int) -> Call:
    """An LSTM of 256 units in bfloat16, forward and backward."""
    lstm = torch.nn.LSTM(inputs, 256, batch_first=True)
    x = torch.randn(SENTENCES, TOKENS, inputs, requires_grad=True)

    def passes() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            found, _ = lstm(x)
        found.float().sum().backward()

    return passes


def self_attention(dtype: torch.dtype) -> Call:
    """Four heads of 48 numbers, forward and backward."""
    shape = SENTENCES, 4, TOKENS, 48
    query, key, value = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))
    seen = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    return lambda: scaled_dot_product_attention(query, key, value, seen).sum().backward()


def dropout(layer: torch.nn.Module) -> Call:
    return partial(layer, torch.randn(SENTENCES, TOKENS, 192))


OPERATIONS: dict[str, tuple[Callable[[], Call], Callable[[], Call]]] = {
    "LSTM in bfloat16, 257 inputs, or 288": (partial(recurrence, 257), partial(recurrence, 288)),
    "self-attention in bfloat16, or float32": (
        partial(self_attention, torch.bfloat16),
        partial(self_attention, torch.float32),
    ),
    "dropout, torch's, or attnlab's": (
        partial(dropout, torch.nn.Dropout(0.2)),
        partial(dropout, Dropout(0.2)),
    ),
}


def milliseconds(call: Call, rounds: int) -> float:
    call()
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(CALLS):
            call()
        taken.append((time.process_time() - start) / CALLS)
    return 1000 * min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=at_least_one, default=5)
    args = parser.parse_args()
    limit_threads()
    rows: list[Row] = []
    for name, (first, second) in OPERATIONS.items():
        slow, ours = milliseconds(first(), args.rounds), milliseconds(second(), args.rounds)
        rows.append({"operation": name, "ms": slow, "ms in its place": ours, "times": slow / ours})
    report("cpu_operations", rows)


if __name__ == "__main__":
    main()
