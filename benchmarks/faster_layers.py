"""A training step with the faster layers, beside one with the plain ones (`hardware.fast=false`).

    python benchmarks/faster_layers.py [--length 14] [--rounds 5]

Models of Multi30k's sizes take forward and backward passes of 64 made sentence pairs, each side
`--length` tokens long, over a vocabulary of 6,000 words, on one thread. A round times all models
one after the other, three passes each; the least processor time of all passes counts.
"""

from __future__ import annotations

from arguments import step_parser
from attention_choices import Timed, least_of, timed_rounds
from configuration import BAHDANAU, FED, GENERAL, PRECISIONS
from process_cost import limit_threads
from results import Row, report

MODELS = {
    "Bahdanau": BAHDANAU,
    "general": GENERAL,
    "general, fed": (*GENERAL, *FED),
    "Transformer": ("experiment=multi30k_vaswani",),
}


def plain(name: str) -> str:
    return f"{name}, plain"


def main() -> None:
    args = step_parser(__doc__, rounds=5).parse_args()
    limit_threads()

    names = [f"{model} {precision}" for model in MODELS for precision in PRECISIONS]
    timed = {}
    for model, experiment in MODELS.items():
        for precision, override in PRECISIONS.items():
            name = f"{model} {precision}"
            timed[name] = Timed(override, of=experiment)
            timed[plain(name)] = Timed((*override, "hardware.fast=false"), of=experiment)
    least = least_of(timed_rounds(timed, args.length, args.rounds))

    rows: list[Row] = [
        {
            "model": name,
            "plain, ms": least[plain(name)],
            "faster, ms": least[name],
            "times as fast": least[plain(name)] / least[name],
        }
        for name in names
    ]
    report(f"faster_layers_{args.length}", rows)


if __name__ == "__main__":
    main()
