"""Training on a GPU: target tokens a second of wall-clock time, with and without CUDA graphs.

    python benchmarks/gpu_training.py --data <folder with Multi30k, tokenised> [--sentences 64 256]

attnlab takes whole steps of `train.py`, after as many as a warm-up has. With graphs the warm-up is
an epoch, in which most shapes are captured; what that epoch cost is shown, too. The peers train as
in training.py, on the GPU, with their own batches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from arguments import add_only, at_least_one, corpus_parser
from configuration import (
    BAHDANAU,
    FED,
    GENERAL,
    JOEYNMT,
    OPENNMT,
    TRANSFORMERS,
    WORK,
    Peer,
)
from given_text import prepared_text
from results import Row, report
from running import check_installed, chosen, run_attnlab, run_peer, slug
from side_by_side import Measured, Rounds, measure
from spool import counters, newest_point

EVERY = 10  # steps between two records of attnlab's counters
SPEED = "tokens/s"
MODELS = {
    "Bahdanau": BAHDANAU,
    "general, fed": (*GENERAL, *FED),
    "Transformer": ("experiment=multi30k_vaswani",),
}
PRECISE = ("hardware=gpu", "hardware.precision=32")
CHOICES = {
    "plain": PRECISE,
    "graphs": (*PRECISE, "hardware.graphs=true"),
    "graphs, bf16": ("hardware=gpu", "hardware.precision=bf16", "hardware.graphs=true"),
}
EPOCH = 29_000  # pairs of the training split


def train_attnlab(
    name: str,
    overrides: tuple[str, ...],
    sentences: int,
    warm_up: int,
    steps: int,
    data: Path,
    prepared: Path,
) -> Measured:
    """Tokens a second from the record after the warm-up to the last, and of all that before."""
    runs = WORK / "gpu" / slug(f"{name}-{sentences}")
    run_attnlab(
        "train.py",
        *overrides,
        f"data.path={data.resolve()}",
        f"paths.data={prepared}",
        f"paths.runs={runs}",
        f"training.batching.size={sentences}",
        "training.max_epochs=null",
        f"training.max_steps={warm_up + steps}",
        f"training.validate_every={warm_up + steps}",
        f"training.log_every={EVERY}",
        "training.validation_search.max_length=1",
        "tracking=none",
        "chain=false",
        "rerun=true",
    )
    counted = {record["step"]: record["metrics"] for record in counters(newest_point(runs))}
    first, last = counted[warm_up], counted[warm_up + steps]
    tokens = last["speed/target_tokens"] - first["speed/target_tokens"]
    before, after = (each["time/training_wall_seconds"] for each in (first, last))
    return {
        SPEED: tokens / (after - before),
        "ms a step": 1000 * (after - before) / steps,
        "seconds of the warm-up": before,
        "peak MB": last["system/peak_cuda_megabytes"],
    }


def train_peer(peer: Peer, text: Path, sentences: int, warm_up: int, steps: int) -> Measured:
    more = {"batches": None, "steps": steps, "warm_up": warm_up, "device": "cuda"}
    model = WORK / "models" / "gpu"
    found, _ = run_peer(peer, peer.job("train", text, model, batch_size=sentences, **more))
    seconds = found["wall_seconds"]
    return {SPEED: found["tokens"] / seconds, "ms a step": 1000 * seconds / steps}


def contestants(
    data: Path, names: list[str], sizes: list[int], steps: int, warm_up: int
) -> dict[str, Callable[[], Measured]]:
    """Who takes part, by name; see `--only`."""
    prepared, text = prepared_text(data)
    every: dict[str, Callable[[], Measured]] = {}
    for sentences in sizes:
        epoch = EPOCH // sentences // EVERY * EVERY
        for model, of_model in MODELS.items():
            for choice, of_choice in CHOICES.items():
                name = f"attnlab {model}, {choice} · {sentences}"
                before = max(warm_up, epoch) if "graphs" in choice else warm_up
                overrides = (*of_model, *of_choice)
                every[name] = partial(
                    train_attnlab, name, overrides, sentences, before, steps, data, prepared
                )
        for peer in (JOEYNMT, *OPENNMT, *TRANSFORMERS):
            every[f"{peer.name} · {sentences}"] = partial(
                train_peer, peer, text, sentences, warm_up, steps
            )
    taking_part = chosen(every, names)
    check_installed(taking_part)
    return taking_part


def rows_of(found: Rounds) -> list[Row]:
    """One line for each contestant: the medians over the rounds."""
    rows: list[Row] = []
    for name, measured in found.of.items():
        values = {value: found.median(name, value) for value in measured[0]}
        rows.append({"contestant · sentences": name, **values})
    return rows


def main() -> None:
    parser = corpus_parser(__doc__)
    add_only(parser)
    parser.add_argument("--sentences", nargs="+", type=at_least_one, default=[64])
    parser.add_argument("--rounds", type=at_least_one, default=1)
    parser.add_argument("--steps", type=at_least_one, default=150)
    parser.add_argument("--warm-up", type=at_least_one, default=50)
    args = parser.parse_args()
    if args.steps % EVERY or args.warm_up % EVERY:
        parser.error(
            f"--steps and --warm-up must be multiples of {EVERY}, got {args.steps} and "
            f"{args.warm_up}"
        )
    taking_part = contestants(args.data, args.only, args.sentences, args.steps, args.warm_up)
    found = measure(taking_part, args.rounds)
    notes = [f"{args.steps} steps after {args.warm_up}, medians of {args.rounds} round(s)"]
    report("gpu_training", rows_of(found), notes)


if __name__ == "__main__":
    main()
