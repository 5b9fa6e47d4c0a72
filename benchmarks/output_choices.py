"""Cost of a training step with each output of the decoder, and how it grows with the sentences.

    python benchmarks/output_choices.py [--lengths 14 50 100 200] [--rounds 3] [--only hard]

The model of `experiment=multi30k_bahdanau`, with the context in the readout alone, takes forward
and backward passes of 8 made sentence pairs, both sides equally long, over a vocabulary of 6,000
words. A round times all outputs one after the other, three passes each; the least of all passes of
a length counts, as in attention_choices.py.
"""

from __future__ import annotations

import argparse

from arguments import add_lengths, at_least_one
from attention_choices import chosen, least_of, timed_rounds
from process_cost import limit_threads
from results import Row, report

DEFAULT = "linear"
SENTENCES = 8
# What an output needs beside itself.
NEEDS = {
    "pointer_generator": ("data.tokenizer.joint=true",),
    "pointer_network": (
        "data.tokenizer.joint=true",
        "model/readout=plain",
        "~model.readout.size",
        "training.label_smoothing=0",
    ),
}


def choices() -> dict[str, tuple[str, ...]]:
    """{name: overrides} of all files of the group, the linear output first."""
    from attnlab.project import CONF

    names = sorted(path.stem for path in (CONF / "model" / "output").glob("*.yaml"))
    names.sort(key=lambda name: name != DEFAULT)
    return {
        name: ("model/decoder=step_then_attend", f"model/output={name}", *NEEDS.get(name, ()))
        for name in names
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_lengths(parser, "a sentence", [14, 50, 100, 200])
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--only", nargs="+", help="parts of the names of outputs")
    args = parser.parse_args()
    limit_threads()
    timed = chosen(choices(), DEFAULT, args.only)
    rounds = {
        length: timed_rounds(timed, length, args.rounds, SENTENCES) for length in args.lengths
    }

    rows: list[Row] = []
    for name in timed:
        row: Row = {"output": name}
        for length, taken in rounds.items():
            least = least_of(taken)
            row[f"{length} tokens, times linear"] = least[name] / least[DEFAULT]
            row[f"{length} tokens, ms"] = least[name]
        rows.append(row)
    report("output_choices", rows)


if __name__ == "__main__":
    main()
