"""Cost of a token as corpus, sentences and vocabulary grow, in training and in greedy decoding.

    python benchmarks/scaling.py [--only corpus length vocabulary decoding] [--steps 20]

Everything is linear where the CPU-seconds per 1,000 target tokens stay as they are down a table.
Corpora are generated (see generated_corpus.py), prepared and trained on by attnlab's own pipelines;
the model is Multi30k's (bahdanau, fp32). Counted are the steps after the warm-up, validations left
out. Down the tables of lengths a batch has as many sentences in each line, so that a product takes
as many rows at once; each token of a longer sentence attends to more.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from arguments import at_least_one
from configuration import BAHDANAU, PRECISIONS
from generated_corpus import GeneratedCorpus
from own_process import in_own_process, private_megabytes
from process_cost import limit_threads
from results import FOLDER, Row, report
from running import run_attnlab
from training import SPEED, train_attnlab

PLACE = FOLDER / "scaling"
MODEL = (*BAHDANAU, *PRECISIONS["fp32"], "training/schedule=constant", "tracking=none")
WARM_UP = 10
BATCH = 1024 // 14  # sentences of Multi30k's lengths: 13 words and <eos>
LONG_BATCH = 8  # sentences, where some are long
WORDS = 2_000
SIZES = (1_000, 10_000, 100_000, 1_000_000)
LENGTHS = (8, 16, 32, 64, 128, 256)
VOCABULARIES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)


def prepared(corpus: GeneratedCorpus) -> tuple[Path, Path]:
    """(the new corpus, its prepared data); every word that occurs is in the vocabulary."""
    shutil.rmtree(PLACE, ignore_errors=True)
    raw, folder = corpus.write(PLACE / "corpus"), PLACE / "prepared"
    own = (f"data.path={raw}", f"paths.data={folder}", "data.tokenizer.min_frequency=1")
    run_attnlab("prepare.py", *MODEL, *own)
    return raw, folder


def trained(corpus: GeneratedCorpus, sentences: int, steps: int, *overrides: str) -> Row:
    """The cost of training on a corpus, with so many sentences in a batch."""
    raw, folder = prepared(corpus)
    vocabulary, opened, planned, held = in_own_process(open_and_plan, folder, sentences)
    settings = ("data.tokenizer.min_frequency=1", f"training.batching.size={sentences}", *overrides)
    given = (*MODEL, *settings, f"data.path={raw}")
    found = train_attnlab("scaling", given, folder, steps, WARM_UP)
    return {
        "vocabulary": vocabulary,
        "open, CPU-s": opened,
        "plan an epoch, CPU-s": planned,
        "private MB of both": held,
        "tokens": found["tokens"],
        "CPU-s per 1,000 tokens": 1_000 / found[SPEED],
        "peak MB": found["peak MB"],
    }


def open_and_plan(folder: Path, sentences: int) -> tuple[int, float, float, float]:
    """The costs of opening the data and planning an epoch, measured in this process.

    The result is the size of the target vocabulary, the CPU-seconds to open the data, those to plan
    an epoch, and the megabytes held.
    """
    from attnlab.data.prepared import PreparedData
    from attnlab.data.sampler import Batching, BatchSampler

    # The first use of a library has a cost of its own, which does not depend on the corpus
    PreparedData(folder).split("test")
    held, start = private_megabytes(), time.process_time()
    data = PreparedData(folder)
    split = data.split("train")
    opened = time.process_time()
    sampler = BatchSampler(split.source_lengths, split.target_lengths, Batching(size=sentences))
    sampler.batches()
    planned = time.process_time()
    return data.target_tokenizer.size, opened - start, planned - opened, private_megabytes() - held


def by_corpus(steps: int) -> list[Row]:
    corpora = (GeneratedCorpus(pairs, WORDS) for pairs in SIZES)
    return [{"pairs": corpus.pairs, **trained(corpus, BATCH, steps)} for corpus in corpora]


def by_length(steps: int) -> list[Row]:
    rows: list[Row] = []
    for length in LENGTHS:
        corpus = GeneratedCorpus(
            (steps + WARM_UP) * LONG_BATCH, WORDS, length, evaluation_pairs=4, exponent=0
        )
        rows.append({"length": length, **trained(corpus, LONG_BATCH, steps)})
    return rows


def by_vocabulary(steps: int) -> list[Row]:
    corpora = (GeneratedCorpus(20_000, words, exponent=0) for words in VOCABULARIES)
    return [{"words": corpus.words, **trained(corpus, BATCH, steps)} for corpus in corpora]


def by_decoded_length(steps: int) -> list[Row]:
    """The cost of greedy decoding, with as many tokens to write as the source has.

    The model has learnt nothing yet.
    """
    model = PLACE / "model"
    trained(GeneratedCorpus(1_000, WORDS), BATCH, steps, f"paths.model={model}")
    return [in_own_process(decoded, model, length) for length in LENGTHS]


def decoded(model_folder: Path, length: int, rounds: int = 3) -> Row:
    import torch

    from attnlab.model.fast import speed_up
    from attnlab.model.model_folder import load_model
    from attnlab.search.greedy import GreedySearch

    model = speed_up(load_model(model_folder))
    search = GreedySearch(max_length=length, min_length=length - 1)
    generator = torch.Generator().manual_seed(1)
    # Ids that any vocabulary has
    source = torch.randint(4, WORDS // 2, (LONG_BATCH, length), generator=generator)
    everywhere = torch.ones_like(source, dtype=torch.bool)
    seconds, tokens = [], LONG_BATCH * length
    with torch.inference_mode():
        for _ in range(rounds + 1):  # the first one warms up
            start = time.process_time()
            search(model, source, everywhere)
            seconds.append(time.process_time() - start)
    return {
        "length": length,
        "tokens": tokens,
        "CPU-s per 1,000 tokens": 1_000 * statistics.median(seconds[1:]) / tokens,
    }


TABLES: dict[str, Callable[[int], list[Row]]] = {
    "corpus": by_corpus,
    "length": by_length,
    "vocabulary": by_vocabulary,
    "decoding": by_decoded_length,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=TABLES, nargs="+", default=list(TABLES))
    parser.add_argument(
        "--steps", type=at_least_one, default=20, help="that are counted, a multiple of 10"
    )
    args = parser.parse_args()
    if args.steps % 10:
        parser.error(f"--steps must be a multiple of 10, got {args.steps}")
    limit_threads()
    try:
        for name in args.only:
            batch = LONG_BATCH if name in ("length", "decoding") else BATCH
            notes = [
                f"{args.steps} steps after {WARM_UP}; {batch} sentences a batch; fp32, one thread"
            ]
            report(f"scaling_{name}", TABLES[name](args.steps), notes)
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)


if __name__ == "__main__":
    main()
