"""A training step whose decoder's step torch compiles, beside the plain and the faster layers.

    python benchmarks/compiled_step.py [--length 14] [--rounds 3]

Models of Multi30k's sizes take forward and backward passes of 64 made sentence pairs, each side
`--length` tokens long, over a vocabulary of 6,000 words, on one thread: with the plain layers, with
them and `torch.compile` (inductor, dynamic shapes) around the step of the decoder's loop, and with
the layers of `model/fast/`. A round times all of them one after the other, three passes each; the
least processor time of all passes counts. `seconds to compile` is how long the first pass keeps one
waiting, in which inductor works, and the C++ compiler that it needs; `steps to repay` is after how
many training steps of the compiled model that is made good, compared with the plain one.
"""

from __future__ import annotations

import math
import time

from arguments import step_parser
from attention_choices import Timed, least_of, made_batch, timed_rounds
from configuration import BAHDANAU, FED, GENERAL, PRECISIONS
from process_cost import limit_threads
from results import Row, report

MODELS = {"Bahdanau": BAHDANAU, "general, fed": (*GENERAL, *FED)}
PLAIN = "hardware.fast=false"


class Compiled(Timed):
    """A plain model whose decoder's step is compiled at the first pass."""

    def __init__(self, overrides: tuple[str, ...], of: tuple[str, ...]) -> None:
        import torch

        super().__init__((*overrides, PLAIN), of=of)
        decoder = self.model.decoder
        decoder.step = torch.compile(decoder.step, dynamic=True)

    def seconds_to_compile(self, length: int) -> float:
        """How long the first passes take."""
        start = time.perf_counter()
        self.milliseconds(made_batch(length))
        return time.perf_counter() - start


def main() -> None:
    args = step_parser(__doc__, rounds=3).parse_args()
    limit_threads()

    rows: list[Row] = []
    for model, experiment in MODELS.items():
        for precision, override in PRECISIONS.items():
            compiled = Compiled(override, experiment)
            seconds = compiled.seconds_to_compile(args.length)
            timed = {
                "plain": Timed((*override, PLAIN), of=experiment),
                "compiled": compiled,
                "faster": Timed(override, of=experiment),
            }
            least = least_of(timed_rounds(timed, args.length, args.rounds))
            saved = (least["plain"] - least["compiled"]) / 1000
            rows.append(
                {
                    "model": f"{model} {precision}",
                    "plain, ms": least["plain"],
                    "compiled, ms": least["compiled"],
                    "faster layers, ms": least["faster"],
                    "seconds to compile": seconds,
                    "steps to repay": math.ceil(seconds / saved) if saved > 0 else "never",
                }
            )
    report(f"compiled_step_{args.length}", rows)


if __name__ == "__main__":
    main()
