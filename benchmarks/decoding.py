"""Decoding, side by side: sentences a CPU-second, greedy and with a beam of 5, on one thread.

    python benchmarks/decoding.py --data <folder with Multi30k, tokenised>
        [--only attnlab OpenNMT] [--rounds 3]

The sentences are those of the test split. Each system first trains a model by itself, which later
runs reuse. Then each decodes in a process of its own: attnlab in the way of its evaluation (the
model folder, `attnlab.search`, its batches), the peers through their own searches, once on the
batches that they make (`own`), once on attnlab's, which are sorted by length (`given`). Loading is
not counted, nor is turning tokens into text. All may write equally many tokens; how many they do
write, `<eos>` included, is listed beside the rate, because a system that writes more has more to
do.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from arguments import add_only, at_least_one, corpus_parser
from attnlab_decoder import decode_job
from configuration import ALL_PEERS, CONTESTANTS, ROOT, SHARED, WORK, Contestant, Peer
from given_text import prepared_text
from process_cost import limit_threads
from results import Row, report
from running import check_installed, chosen, run_attnlab, run_or_exit, run_peer, slug
from side_by_side import Measured, Rounds, measure

SPEED = "sentences/CPU-s"
BEAMS = {"greedy": 1, "beam 5": 5}
# One model decodes in every precision; a model that was fed its own guesses decodes no faster.
TRAINED = tuple(
    c for c in CONTESTANTS if not any("teacher_forcing" in override for override in c.overrides)
)
IN_INTEGERS = tuple(
    replace(c, name=c.name.replace("fp32", "int8")) for c in TRAINED if c.name.endswith("fp32")
)
DECODERS = (*TRAINED, *IN_INTEGERS)


def model_folder(name: str, prepared: Path, steps: int) -> Path:
    """Where a model that was trained on these data lies."""
    from attnlab.data.prepared import PreparedData

    return WORK / "models" / f"{slug(name)}-{steps}-{PreparedData(prepared).digest[:8]}"


def trained_attnlab(contestant: Contestant, data: Path, prepared: Path, steps: int) -> Path:
    """The model folder of a contestant, trained in single precision where it is not there yet."""
    overrides = [override for override in contestant.overrides if "precision" not in override]
    folder = model_folder(contestant.name.rsplit(" ", 1)[0], prepared, steps)
    if not (folder / "model.json").is_file():
        print(f"training {folder.name}", file=sys.stderr, flush=True)
        run_attnlab(
            "train.py",
            *overrides,
            "hardware.precision=32",
            f"data.path={data.resolve()}",
            f"paths.data={prepared}",
            f"paths.runs={WORK / 'attnlab' / folder.name}",
            f"paths.model={folder}",
            "training.max_epochs=null",
            f"training.max_steps={steps}",
            "tracking=none",
            "chain=false",
        )
    return folder


def trained_peer(peer: Peer, prepared: Path, text: Path, steps: int) -> Path:
    """The folder with a peer's checkpoint, trained where it is not there yet."""
    folder = model_folder(peer.name, prepared, steps)
    done = folder / "trained.json"
    if not done.is_file():
        print(f"training {folder.name}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        found, _ = run_peer(
            peer, peer.job("train", text, folder, batches=None, steps=steps - 1, warm_up=0)
        )
        done.write_text(json.dumps(found) + "\n")
    return folder


def decode_attnlab(contestant: Contestant, model: Path, prepared: Path, beam: int) -> Measured:
    job = decode_job(model, prepared, contestant.name.rsplit(" ", 1)[1], beam)
    cost, said = run_or_exit(
        sys.executable, ROOT / "benchmarks" / "attnlab_decoder.py", json.dumps(job)
    )
    return measured(json.loads(said.splitlines()[-1]), cost.peak_megabytes)


def decode_peer(peer: Peer, model: Path, text: Path, batches: Path | None, beam: int) -> Measured:
    given = None if batches is None else str(batches)
    found, cost = run_peer(peer, peer.job("decode", text, model, batches=given, beam=beam))
    return measured(found, cost.peak_megabytes)


def measured(found: dict[str, float], peak: float) -> Measured:
    return {
        SPEED: found["sentences"] / found["cpu_seconds"],
        "tokens a sentence": found["tokens"] / found["sentences"],
        "tokens/CPU-s": found["tokens"] / found["cpu_seconds"],
        "peak MB": peak,
    }


def ratios(found: Rounds) -> list[Row]:
    """The ratios of each contestant to each of its rivals, for each search and batching.

    A line is left out unless both were measured.
    """
    rows: list[Row] = []
    for contestant in DECODERS:
        for search in BEAMS:
            ours = f"{contestant.name} · {search}"
            for theirs in (
                f"{name} · {search} · {own}"
                for name in contestant.rivals
                for own in ("own", "given")
            ):
                if ours in found.of and theirs in found.of:
                    row: Row = {"attnlab": ours, "peer · batches": theirs}
                    for value in (SPEED, "tokens/CPU-s"):
                        row[f"times as many {value}"] = found.ratio(ours, theirs, value)
                    row |= {
                        SPEED: found.median(ours, SPEED),
                        "peer's": found.median(theirs, SPEED),
                        "tokens a sentence": found.median(ours, "tokens a sentence"),
                        "peer's tokens": found.median(theirs, "tokens a sentence"),
                    }
                    rows.append(row)
    return rows


def single(found: Rounds) -> list[Row]:
    keys = (SPEED, "tokens a sentence", "tokens/CPU-s", "peak MB")
    return [
        {
            "contestant": name,
            **{key: found.median(name, key) for key in keys},
            "spread %": found.spread(name, SPEED),
        }
        for name in found.of
    ]


def contestants(
    data: Path, names: list[str], batchings: list[str], searches: list[str], steps: int
) -> dict[str, Callable[[], Measured]]:
    """Who takes part, by name, each with a trained model."""
    prepared, text = prepared_text(data)
    every: dict[str, Callable[[], Callable[[], Measured]]] = {}

    def attnlab(contestant: Contestant, beam: int) -> Callable[[], Measured]:
        model = trained_attnlab(contestant, data, prepared, steps)
        return lambda: decode_attnlab(contestant, model, prepared, beam)

    def peers(peer: Peer, beam: int, batches: Path | None) -> Callable[[], Measured]:
        model = trained_peer(peer, prepared, text, steps)
        return lambda: decode_peer(peer, model, text, batches, beam)

    for search in searches:
        beam = BEAMS[search]
        for contestant in DECODERS:
            every[f"{contestant.name} · {search}"] = lambda c=contestant, k=beam: attnlab(c, k)  # type: ignore[misc]
        for peer in ALL_PEERS:
            for batching in batchings:
                given = None if batching == "own" else text / "test.batches"
                every[f"{peer.name} · {search} · {batching}"] = lambda p=peer, k=beam, b=given: (
                    peers(p, k, b)
                )  # type: ignore[misc]
    taking_part = chosen(every, names)
    check_installed(taking_part)
    return {name: trained() for name, trained in taking_part.items()}


def main() -> None:
    parser = corpus_parser(__doc__)
    add_only(parser)
    parser.add_argument("--batches", nargs="+", choices=["own", "given"], default=["own", "given"])
    parser.add_argument("--searches", nargs="+", choices=list(BEAMS), default=list(BEAMS))
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument(
        "--train-steps",
        type=at_least_one,
        default=450,
        help="of the models that decode; 454 are an epoch",
    )
    args = parser.parse_args()
    limit_threads()
    names = contestants(args.data, args.only, args.batches, args.searches, args.train_steps)
    found = measure(names, args.rounds)
    notes = [
        f"the test split, {SHARED.batch_size} sentences a batch, at most {SHARED.max_length} "
        f"tokens a sentence; models of {args.train_steps} steps; medians of {args.rounds} rounds, "
        "a ratio is taken within a round"
    ]
    if rows := ratios(found):
        report("decoding_ratios", rows, notes)
    report("decoding", single(found), notes)


if __name__ == "__main__":
    main()
