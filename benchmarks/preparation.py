"""Preparing a corpus: pairs a CPU-second and peak memory against its size.

    python benchmarks/preparation.py [--pairs 10000 100000 1000000]
        [--tokenizer whitespace] [--rounds 1] [--threads 1]

attnlab's own code runs on one thread, the library of tokenisers on as many as are given. The
corpora are generated: two parallel text files a split, words by Zipf's law, lengths like
Multi30k's. `tokenizers alone` is the library at the same sentences with nothing around it: the
upper limit of a faster preparation. Private memory leaves out the pages of mapped files (the corpus
as `datasets` maps it), which the system takes back whenever it needs them; it is sampled once in a
thousand pairs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from pathlib import Path

from arguments import at_least_one
from generated_corpus import GeneratedCorpus
from own_process import in_own_process, private_megabytes
from process_cost import limit_threads, this_process
from results import FOLDER, Row, report

TOKENIZERS = ("whitespace", "punctuation", "bpe")
ALONE = 100_000  # pairs at which the library alone is measured


def prepare_measured(corpus: Path, folder: Path, tokenizer: str, threads: int) -> dict[str, float]:
    """Prepare a corpus in this process: seconds, of the CPU and of the clock, and megabytes."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    import datasets  # noqa: F401  (a second of its own, whatever the corpus)

    from attnlab.data.corpus import Cleaning
    from attnlab.data.hub import HubCorpus
    from attnlab.data.prepare import prepare
    from attnlab.data.row_kinds import Pairs
    from attnlab.data.tokenizer import library_threads
    from attnlab.data.trainers import BpeTrainer, WordTrainer

    trainer = BpeTrainer() if tokenizer == "bpe" else WordTrainer(split=tokenizer, min_frequency=2)  # type: ignore[arg-type]
    splits: dict[str, str | float] = {split: split for split in ("train", "validation", "test")}
    place = (None, str(corpus), None, None, splits, 1, None, None, None, None)
    pairs = HubCorpus(*place, "de", "en", None, None, 0, "none", None, Cleaning(), trainer)
    before = most = private_megabytes()
    started: dict[str, float] = {}  # CPU-seconds at the start of each stage
    clock = time.perf_counter()

    def print_progress(what: str, done: int, total: int) -> None:
        nonlocal most
        most = max(most, private_megabytes())
        started.setdefault(what, time.process_time())

    with library_threads():
        prepare(pairs, Pairs, folder, print_progress)
    end = time.process_time()
    return {
        "by the clock": time.perf_counter() - clock,
        "all": end - started["load"],
        "training": started["train"] - started["tokenizer"],
        "before MB": before,
        "private MB": most,
        "peak MB": this_process().peak_megabytes,
        "prepared MB": (folder / "train.arrow").stat().st_size / 1e6,
        "alone": library_alone(folder),
    }


def library_alone(folder: Path) -> float:
    """CPU-seconds a pair of `tokenizers` at the prepared texts."""
    import tokenizers

    from attnlab.data.rows import batches_of_file

    backends = {
        side: tokenizers.Tokenizer.from_file(str(folder / f"{side}_tokenizer.json"))
        for side in ("source", "target")
    }
    seconds, pairs = 0.0, 0
    for start, rows in batches_of_file(folder / "train.arrow"):
        if start >= ALONE:
            break
        pairs += len(rows)
        for side, backend in backends.items():
            texts = rows[side].to_pylist()
            before = time.process_time()
            backend.encode_batch_fast(texts, add_special_tokens=False)
            seconds += time.process_time() - before
    return seconds / pairs


def row(pairs: int, rounds: list[dict[str, float]]) -> Row:
    found = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
    return {
        "pairs": pairs,
        "pairs/s": pairs / found["by the clock"],
        "pairs/CPU-s": pairs / found["all"],
        "without training the tokenisers": pairs / (found["all"] - found["training"]),
        "tokenizers alone": 1 / found["alone"],
        "private MB before": found["before MB"],
        "at most": found["private MB"],
        "resident MB at most": found["peak MB"],
        "prepared MB": found["prepared MB"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pairs", type=at_least_one, nargs="+", default=[10_000, 100_000, 1_000_000]
    )
    parser.add_argument(
        "--words", type=at_least_one, default=30_000, help="kinds of words on each side"
    )
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default="whitespace")
    parser.add_argument("--rounds", type=at_least_one, default=1)
    parser.add_argument("--threads", type=at_least_one, default=1, help="of `tokenizers`")
    args = parser.parse_args()
    limit_threads()
    place = FOLDER / "preparation"
    rounds: dict[int, list[dict[str, float]]] = {pairs: [] for pairs in args.pairs}
    try:
        for pairs in args.pairs:
            GeneratedCorpus(pairs, args.words).write(place / str(pairs))
        for _ in range(args.rounds):
            for pairs in args.pairs:
                corpus, folder = place / str(pairs), place / "prepared"
                rounds[pairs].append(
                    in_own_process(prepare_measured, corpus, folder, args.tokenizer, args.threads)
                )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    notes = [
        f"tokeniser: {args.tokenizer}; {args.words} kinds of words a side; medians of "
        f"{args.rounds} round(s); threads of `tokenizers`: {args.threads}"
    ]
    report("preparation", [row(pairs, found) for pairs, found in rounds.items()], notes)


if __name__ == "__main__":
    main()
