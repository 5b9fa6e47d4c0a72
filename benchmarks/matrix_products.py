"""The machine's matrix-product rate at the model's shapes, and the tokens a second that it allows.

    python benchmarks/matrix_products.py

Counted are the model's products with a weight matrix and those of the attention with keys and
values, and nothing else: no tanh, no softmax, no gates, no embedding, no optimiser, no copies. The
bridge's are left out too, half a percent of a step, and those for a guess that training feeds back.
Each product (M, K) x (K, N) is timed three times: forward, as the gradient of its input (M, N) x
(N, K), and as the gradient of its weight (K, M) x (M, N), which a decoder may take for all its
steps at once: there M counts the rows of every step. A product of the attention is batched over the
sentences and has two gradients of its own size. Lengths are the corpus's means, so pads are free of
charge. A model that did nothing but these products, at these rates, would train as many tokens a
second as printed. A second table has the rates of both libraries, MKL and oneDNN, in float32.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from configuration import CONTESTANTS, SHARED, Shared
from process_cost import limit_threads
from results import Row, report

# Multi30k de-en: real tokens of a sentence, <eos> included, in whitespace tokens.
SOURCE_LENGTH, TARGET_LENGTH = 13.4, 14.0
VOCABULARY = 5921
WEIGHTS_BYTES = 24_000_000  # half of a model's


@dataclass(frozen=True)
class Product:
    """`times` products (rows, inner) x (inner, columns) in a training step.

    batch: sentences that have such a product each; 1 for a product with a weight matrix.
    at_once: the weight's gradient is one product over all times.
    """

    name: str
    rows: int
    inner: int
    columns: int
    times: float = 1
    batch: int = 1
    at_once: bool = True

    @property
    def flops(self) -> float:
        """Of the forward pass: a multiplication and an addition each."""
        return 2.0 * self.times * self.batch * self.rows * self.inner * self.columns

    def seconds(self, precision: str) -> float:
        """Forward and backward, at the rates of their shapes."""
        m, k, n = self.rows, self.inner, self.columns
        forward = self.times * seconds_of(self.batch, m, k, n, precision)
        inputs = self.times * seconds_of(self.batch, m, n, k, precision)
        if self.batch == 1 and self.at_once:
            return forward + inputs + seconds_of(1, k, round(m * self.times), n, precision)
        return forward + inputs + self.times * seconds_of(self.batch, k, m, n, precision)


def products(
    score: str, input_feeding: bool, attends_first: bool, shared: Shared = SHARED
) -> list[Product]:
    """Every product of one training step of THE configuration.

    score: `bahdanau` or `general`.
    attends_first: the context goes into the cell, and into the readout with the token; else into
        the readout alone.
    """
    b, e, h, a, r = (
        shared.batch_size,
        shared.embedding,
        shared.decoder,
        shared.attention,
        shared.readout,
    )
    s, t, d = SOURCE_LENGTH, TARGET_LENGTH, 2 * shared.encoder
    source_rows, target_rows, steps, source = round(b * s), round(b * t), round(t), round(s)
    into_cell = e + (d if attends_first else 0) + (r if input_feeding else 0)
    into_readout = h + d + (e if attends_first else 0)
    found = [
        Product("encoder, input", source_rows, e, 4 * shared.encoder, times=2, at_once=False),
        Product("encoder, recurrent", b, shared.encoder, 4 * shared.encoder, times=2 * source),
        Product("keys", source_rows, d, a if score == "bahdanau" else h),
        Product("cell, recurrent", b, h, 4 * h, times=steps),
    ]
    # What no step feeds to the next is known for all steps before the first.
    feeds = attends_first or input_feeding
    early = e if feeds else into_cell
    found.append(Product("cell, token", target_rows, early, 4 * h))
    if feeds:
        found.append(Product("cell, context or fed", b, into_cell - e, 4 * h, times=steps))
    if score == "bahdanau":
        found.append(Product("query", b, h, a, times=steps))
        found.append(Product("scores", source_rows, a, 1, times=steps, at_once=False))
    else:
        found.append(Product("scores", 1, h, source, times=steps, batch=b))
    found.append(Product("context", 1, source, d, times=steps, batch=b))
    if input_feeding:
        found.append(Product("readout", b, into_readout, r, times=steps))
    else:
        found.append(Product("readout", target_rows, into_readout, r))
    found.append(Product("output", target_rows, r, VOCABULARY))
    return found


def tokens_per_second(counted: Sequence[Product], precision: str, shared: Shared = SHARED) -> float:
    """Real target tokens that a training of nothing but these products could read in a second."""
    return (
        shared.batch_size * TARGET_LENGTH / sum(product.seconds(precision) for product in counted)
    )


def flops_per_token(counted: Sequence[Product], shared: Shared = SHARED) -> float:
    """Forward, and twice as much backward, for each real target token."""
    return 3 * sum(product.flops for product in counted) / (shared.batch_size * TARGET_LENGTH)


def limits() -> dict[str, float]:
    """The tokens a second of every compared model in each precision, by `limit_name`.

    Each call measures again.
    """
    seconds_of.cache_clear()
    models = {(c.score, c.input_feeding, c.attends_first) for c in CONTESTANTS if c.score}
    return {
        limit_name(score, fed, precision): tokens_per_second(products(score, fed, first), precision)
        for score, fed, first in sorted(models)
        for precision in sorted({c.precision for c in CONTESTANTS})
    }


def limit_name(score: str, input_feeding: bool, precision: str) -> str:
    return f"{score}{', fed' if input_feeding else ''}, {precision}"


@functools.cache
def seconds_of(batch: int, m: int, k: int, n: int, precision: str) -> float:
    """Processor seconds of one product by torch's faster library, in the better layout.

    The two libraries are MKL and oneDNN.
    """
    import torch

    from attnlab.model.fast.products import has_onednn, onednn_product

    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    shape = () if batch == 1 else (batch,)
    one, other = torch.randn(*shape, m, k).to(kind), torch.randn(*shape, k, n).to(kind)
    times = max(1, int(0.02 * 5e10 / (2 * batch * m * k * n)))
    found = median_seconds(lambda: torch.matmul(one, other), times)
    if batch > 1 or not has_onednn(kind):
        return found
    layouts = other.t(), other.t().contiguous()
    return min(
        found,
        *(
            median_seconds(lambda weight=weight: onednn_product(one, weight), times)  # type: ignore[misc]
            for weight in layouts
        ),
    )


def by_library() -> list[Row]:
    """GFLOP/s of MKL and of oneDNN in float32, for products with a weight matrix."""
    counted = products("bahdanau", input_feeding=False, attends_first=True)
    return [rates_of(each) for each in counted if each.batch == 1 and each.columns > 1]


def rates_of(counted: Product) -> Row:
    """GFLOP/s of a product by both libraries: forward, and its two gradients.

    The weight's gradient is one product over all times. Of the weights there are so many that none
    stays in a cache, as in a step.
    """
    import torch
    from torch.nn.functional import linear

    from attnlab.model.fast.products import onednn_product

    rows, inner, columns = counted.rows, counted.inner, counted.columns
    count = max(1, WEIGHTS_BYTES // (4 * inner * columns))
    weights = [torch.randn(columns, inner) for _ in range(count)]
    x, gradient = torch.randn(rows, inner), torch.randn(rows, columns)
    together = round(rows * counted.times) if counted.at_once else rows
    every_x, every_gradient = torch.randn(together, inner), torch.randn(together, columns)

    flops = 2.0 * rows * inner * columns * count
    of_weight = 2.0 * together * inner * columns
    found: Row = {"product": counted.name, "shape": f"{rows} x {inner} x {columns}"}
    for name, multiply in {"MKL": linear, "oneDNN": onednn_product}.items():
        forward = median_seconds(lambda by=multiply: [by(x, each) for each in weights], 2)  # type: ignore[misc]
        of_input = median_seconds(
            lambda by=multiply: [by(gradient, each.t()) for each in weights],  # type: ignore[misc]
            2,
        )
        at_end = median_seconds(lambda by=multiply: by(every_gradient.t(), every_x.t()), 2)  # type: ignore[misc]
        found[f"forward, {name}"] = flops / forward / 1e9
        found[f"input's gradient, {name}"] = flops / of_input / 1e9
        found[f"weight's gradient, {name}"] = of_weight / at_end / 1e9
    return found


def median_seconds(multiply: Callable[[], object], times: int) -> float:
    """Of one product: the median of five goes of `times` of them, at least 20 ms each."""
    multiply()
    found = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(times):
            multiply()
        found.append((time.process_time() - started) / times)
    return statistics.median(found)


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    limit_threads()
    allowed = limits()
    rows: dict[str, Row] = {}
    for contestant in (each for each in CONTESTANTS if each.score):
        name = limit_name(contestant.score, contestant.input_feeding, contestant.precision)
        counted = products(contestant.score, contestant.input_feeding, contestant.attends_first)
        flops = flops_per_token(counted)
        rates = {
            p.name: 3 * p.flops / p.seconds(contestant.precision) / 1e9
            for p in counted
            if p.name in SHOWN
        }
        rows[name] = {
            "model, precision": name,
            "limit, tokens/s": allowed[name],
            "MFLOP a token": flops / 1e6,
            "GFLOP/s": flops * allowed[name] / 1e9,
            **rates,
        }
    report(
        "matrix_products",
        list(rows.values()),
        ["to the right: GFLOP/s of single products, forward and backward"],
    )
    report("matrix_libraries", by_library(), ["GFLOP/s of Bahdanau's products, float32"])


SHOWN = ("encoder, recurrent", "cell, recurrent", "readout", "output")


if __name__ == "__main__":
    main()
