"""Training, side by side: real target tokens a CPU-second of attnlab and peers, on one thread.

    python benchmarks/training.py --data <folder with Multi30k, tokenised>
        [--only attnlab OpenNMT] [--rounds 3]

In each round every contestant trains once in a process of its own: attnlab through
`pipelines/train.py`, Lightning and MLflow on, the peers through their own entries (see peers/),
once on batches as they make them (`own`) and once on attnlab's (`given`), which separates what the
model costs from what the batching saves. Counted are the steps after the warm-up, batches and
optimiser included, validations left out, and of the tokens only real ones, `<eos>` included.
`matrix products alone` is what the machine could do in the same round if a model were nothing else
(see matrix_products.py).
"""

from __future__ import annotations

import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from arguments import add_only, at_least_one, corpus_parser
from configuration import ALL_PEERS, CONTESTANTS, WORK, Peer
from given_text import prepared_text
from matrix_products import limit_name, limits
from process_cost import limit_threads
from results import Row, report
from running import check_installed, chosen, run_attnlab, run_peer, slug
from side_by_side import Measured, Rounds, measure
from spool import counters, newest_point

EVERY = 10  # steps between two records of attnlab's counters
SPEED = "tokens/CPU-s"
LIMITS = "matrix products alone"


def train_attnlab(
    name: str, overrides: Sequence[str], prepared: Path, steps: int, warm_up: int
) -> Measured:
    """The counters of a training, from the record after the warm-up to the last."""
    runs = WORK / "attnlab" / slug(name)
    cost, _ = run_attnlab(
        "train.py",
        *overrides,
        f"paths.data={prepared}",
        f"paths.runs={runs}",
        "training.max_epochs=null",
        f"training.max_steps={warm_up + steps}",
        f"training.log_every={EVERY}",
        # A validation takes no part in what is counted; let it be short.
        "training.validation_search.max_length=1",
        "chain=false",
        "rerun=true",
    )
    point = newest_point(runs)
    counted = {record["step"]: record["metrics"] for record in counters(point)}
    first, last = counted[warm_up], counted[warm_up + steps]
    tokens = last["speed/target_tokens"] - first["speed/target_tokens"]
    seconds = last["time/training_cpu_seconds"] - first["time/training_cpu_seconds"]
    return {
        SPEED: tokens / seconds,
        "parameters": count_parameters(point / "model"),
        "tokens": tokens,
        "peak MB": cost.peak_megabytes,
    }


def count_parameters(model: Path) -> int:
    """The numbers that a model learns, tied ones once."""
    from attnlab.model.model_folder import load_model

    return sum(parameter.numel() for parameter in load_model(model).parameters())


def train_peer(peer: Peer, text: Path, batches: Path | None, steps: int, warm_up: int) -> Measured:
    more = {
        "batches": None if batches is None else str(batches),
        "steps": steps,
        "warm_up": warm_up,
    }
    found, cost = run_peer(peer, peer.job("train", text, WORK / "models" / "measured", **more))
    return {
        SPEED: found["tokens"] / found["cpu_seconds"],
        "parameters": found["parameters"],
        "tokens": found["tokens"],
        "peak MB": cost.peak_megabytes,
    }


def ratios(found: Rounds) -> list[Row]:
    """The ratios of each contestant to each of its rivals, a peer on each batching.

    A line is left out unless both were measured.
    """
    rows: list[Row] = []
    for contestant in CONTESTANTS:
        for rival in (
            f"{name}{batching}"
            for name in contestant.rivals
            for batching in ("", " · own", " · given")
        ):
            if contestant.name in found.of and rival in found.of:
                ours, theirs = (
                    found.median(name, "parameters") for name in (contestant.name, rival)
                )
                rows.append(
                    {
                        "attnlab": contestant.name,
                        "against · batches": rival,
                        "times as fast": found.ratio(contestant.name, rival, SPEED),
                        "tokens/CPU-s": found.median(contestant.name, SPEED),
                        "theirs": found.median(rival, SPEED),
                        "parameters, % of theirs": f"{100 * (ours / theirs - 1):+.1f}",
                    }
                )
    return rows


def single(found: Rounds) -> list[Row]:
    """One line for each contestant.

    attnlab's show their share of what the matrix products alone would allow.
    """
    by_name = {contestant.name: contestant for contestant in CONTESTANTS}
    rows: list[Row] = []
    for name in found.of:
        if name == LIMITS:
            continue
        row: Row = {
            key: found.median(name, key) for key in (SPEED, "parameters", "tokens", "peak MB")
        }
        row = {"contestant": name, **row, "spread %": found.spread(name, SPEED)}
        if name in by_name and by_name[name].score:
            ours = by_name[name]
            limit = limit_name(ours.score, ours.input_feeding, ours.precision)
            pairs = zip(found.of[name], found.of[LIMITS], strict=True)
            row["matrix products alone"] = found.median(LIMITS, limit)
            row["share of them %"] = statistics.median(
                100 * one[SPEED] / other[limit] for one, other in pairs
            )
        rows.append(row)
    return rows


def contestants(
    data: Path, names: list[str], batchings: list[str], steps: int, warm_up: int
) -> dict[str, Callable[[], Measured]]:
    """Who takes part, by name; see `--only`."""
    prepared, text = prepared_text(data)
    every: dict[str, Callable[[], Measured]] = {}
    for contestant in CONTESTANTS:
        overrides = (*contestant.overrides, f"data.path={data.resolve()}")
        every[contestant.name] = lambda name=contestant.name, of=overrides: train_attnlab(
            name, of, prepared, steps, warm_up
        )  # type: ignore[misc]
    for peer in ALL_PEERS:
        for batching in batchings:
            batches = None if batching == "own" else text / "train.batches"
            every[f"{peer.name} · {batching}"] = lambda p=peer, b=batches: train_peer(
                p, text, b, steps, warm_up
            )  # type: ignore[misc]
    taking_part = chosen(every, names)
    check_installed(taking_part)
    return {**taking_part, LIMITS: limits}


def check_steps(parser: ArgumentParser, args: Namespace) -> None:
    """End with a message where attnlab has no record at the steps asked for."""
    if args.steps % EVERY or args.warm_up % EVERY:
        parser.error(
            f"--steps and --warm-up must be multiples of {EVERY}, got {args.steps} and "
            f"{args.warm_up}"
        )


def main() -> None:
    parser = corpus_parser(__doc__)
    add_only(parser)
    parser.add_argument("--batches", nargs="+", choices=["own", "given"], default=["own", "given"])
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--steps", type=at_least_one, default=120)
    parser.add_argument("--warm-up", type=at_least_one, default=30)
    args = parser.parse_args()
    check_steps(parser, args)
    limit_threads()
    found = measure(
        contestants(args.data, args.only, args.batches, args.steps, args.warm_up), args.rounds
    )
    notes = [
        f"{args.steps} steps after {args.warm_up}, medians of {args.rounds} rounds; a ratio is "
        "taken within a round"
    ]
    if rows := ratios(found):
        report("training_ratios", rows, notes)
    report("training", single(found), notes)


if __name__ == "__main__":
    main()
