"""How the cost of a training step grows with the length of the source.

    python benchmarks/growth.py [--lengths 10 100 1000 4000] [--rounds 2] [--only MoChA]
        [--picture FILE.png]

Models of Multi30k's sizes (`experiment=multi30k_bahdanau`, and `multi30k_vaswani` for the
Transformer) take forward and backward passes of 4 made sentence pairs, over a vocabulary of 6,000
words, in float32 on one thread; a target has 14 tokens. Milliseconds are processor time, the least
of all passes. Hard attention over all alignments stops at 200 tokens. The picture has three panels:
networks, what is remembered and weighed, and outputs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from arguments import add_lengths, at_least_one
from attention_choices import Timed, made_batch
from configuration import BAHDANAU, FED, GENERAL
from output_choices import choices as output_choices
from process_cost import limit_threads
from results import Row, report

SENTENCES = 4
TARGET = 14  # tokens
TRANSFORMER = ("experiment=multi30k_vaswani",)
MARGINALISED = "hard_attention", "hard_monotonic_attention", "first_order_hard_attention"
LONGEST_MARGINALISED = 200

Overrides = tuple[str, ...]


def members() -> dict[str, dict[str, Overrides]]:
    """{panel: {name: overrides}}."""
    outputs = output_choices()
    return {
        "networks": {
            "Bahdanau": BAHDANAU,
            "Luong, general": GENERAL,
            "the same, fed": (*GENERAL, *FED),
            "Transformer": TRANSFORMER,
            "linear attention": (*BAHDANAU, "model/attention=linear_attention"),
            "delta rule": (*BAHDANAU, "model/attention=delta_rule"),
        },
        "weights and histories": {
            "softmax": BAHDANAU,
            "1.5-entmax": (*BAHDANAU, "model/normaliser=entmax"),
            "sparsemax": (*BAHDANAU, "model/normaliser=sparsemax"),
            "top-k": (*BAHDANAU, "model/normaliser=top_k"),
            "local-p": (*BAHDANAU, "model/scope=local_p"),
            "location-sensitive": (*BAHDANAU, "model/history=location_sensitive"),
            "monotonic": (*BAHDANAU, "model/history=monotonic"),
            "MoChA": (*BAHDANAU, "model/history=mocha"),
        },
        "outputs": {name: (*BAHDANAU, *overrides) for name, overrides in outputs.items()},
    }


def milliseconds(overrides: Overrides, lengths: Sequence[int], rounds: int) -> dict[int, float]:
    """{tokens of the source: milliseconds of a step}."""
    timed = Timed((), of=overrides)
    taken = {}
    for length in lengths:
        batch = made_batch(length, SENTENCES, TARGET)
        taken[length] = min(timed.milliseconds(batch) for _ in range(rounds))
    return taken


def draw(panels: Mapping[str, Mapping[str, Mapping[int, float]]], file: Path) -> None:
    """Curves over the length of the source, both axes by powers of ten."""
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    from attnlab.plots.figure import COLOURS, INK, new_figure, save_png, styled_axes

    every = [ms for curves in panels.values() for taken in curves.values() for ms in taken.values()]
    figure = new_figure(5 * len(panels), 4.6)
    for number, (title, curves) in enumerate(panels.items(), start=1):
        axes = styled_axes(
            figure,
            columns=len(panels),
            index=number,
            title=title,
            x="tokens of the source",
            y="milliseconds of a step",
        )
        for curve, (name, taken) in enumerate(curves.items()):
            colour = COLOURS[curve % len(COLOURS)]
            axes.plot(list(taken), list(taken.values()), color=colour, marker=".", label=name)
        axes.set(xscale="log", yscale="log", ylim=(0.7 * min(every), 1.5 * max(every)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axis.set_minor_formatter(NullFormatter())
        axes.legend(fontsize=8, labelcolor=INK, frameon=False)
    save_png(figure, file)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_lengths(parser, "a source", [10, 30, 100, 200, 400, 1000, 4000])
    parser.add_argument("--rounds", type=at_least_one, default=2)
    parser.add_argument("--only", nargs="+", help="parts of the names of models")
    parser.add_argument("--picture", type=Path, help="where to draw it")
    args = parser.parse_args()
    limit_threads()

    panels: dict[str, dict[str, dict[int, float]]] = {}
    for panel, of_panel in members().items():
        for name, overrides in of_panel.items():
            if args.only and not any(part in name for part in args.only):
                continue
            lengths = args.lengths
            if name in MARGINALISED:
                lengths = [length for length in lengths if length <= LONGEST_MARGINALISED]
            panels.setdefault(panel, {})[name] = milliseconds(overrides, lengths, args.rounds)
            print(f"{panel}: {name}", flush=True)

    rows: list[Row] = []
    for panel, curves in panels.items():
        for name, taken in curves.items():
            row: Row = {"panel": panel, "model": name}
            row |= {f"{length} tokens, ms": ms for length, ms in taken.items()}
            rows.append(row)
    notes = [f"{SENTENCES} sentences, targets of {TARGET} tokens; fp32, one thread"]
    report("growth", rows, notes)
    if args.picture:
        draw(panels, args.picture)
        print(f"picture: {args.picture}")


if __name__ == "__main__":
    main()
