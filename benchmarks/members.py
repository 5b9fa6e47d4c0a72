"""Members of the family beside the systems that have them: yoyodyne and the package entmax.

    python benchmarks/members.py [--only hard entmax] [--rounds 3] [--steps 60] [--warm-up 20]

yoyodyne's recurrent models, each beside attnlab's of the same layers as nearly as both allow, learn
localised dates, character by character: 64 pairs a batch, one vocabulary, embeddings of 128, LSTMs
of 2 x 256 and 512 units. Both train by their own entries and on their own batches. attnlab sorts
its batches by length and yoyodyne does not, so that its pads cost it time; a second line of
attnlab's has batches that are not sorted. What still differs: attnlab has an embedding for each
side, and its first state comes through a layer (`linear`, of 525,312 numbers), where yoyodyne's is
learned; yoyodyne's scores have a bias, and its hard attention checks each step by assertions; it
reads its batches in a second process, whose time is not counted. What is counted besides is what
`training.py` counts.

entmax is a package of functions, and so weights alone are compared: a forward and a backward pass
over scores of one shape, those of all steps of a batch at once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arguments import add_only, at_least_one
from configuration import ROOT, WORK, python_of
from process_cost import limit_threads
from results import Row, report
from running import chosen, run_attnlab, run_or_exit, slug
from side_by_side import Measured, Rounds, measure
from training import SPEED, check_steps, train_attnlab

if TYPE_CHECKING:
    from torch import nn

OURS, THEIRS = "attnlab", "theirs"
UNSORTED = "attnlab, not sorted"

SIZES: dict[str, Any] = {
    "embedding": 128,
    "encoder": 256,  # units of each direction
    "decoder": 512,
    "batch_size": 64,
    "dropout": 0.2,
    "learning_rate": 0.001,
    "clip": 1.0,
    "seed": 1,
}
DATA = ("data=dates", "data.tokenizer.joint=true")
SHARED = (
    *DATA,
    f"seed={SIZES['seed']}",
    "model/encoder=lstm",
    f"model.encoder.embedding_size={SIZES['embedding']}",
    f"model.encoder.hidden_size={SIZES['encoder']}",
    f"model.encoder.dropout={SIZES['dropout']}",
    f"model.decoder.hidden_size={SIZES['decoder']}",
    f"training.batching.size={SIZES['batch_size']}",
    f"training.optimizer.lr={SIZES['learning_rate']}",
    "hardware.precision=32",
)
ADDITIVE = ("model/attention=bahdanau", f"model.attention.size={SIZES['decoder']}")
# yoyodyne's hard attention reads tanh(W [h; s]) of a state and a character, as wide as both.
HARD = (
    "model/decoder=step_then_attend",
    "model/attention=general",
    f"model.readout.size={2 * SIZES['encoder'] + SIZES['decoder']}",
)


@dataclass(frozen=True)
class Pair:
    """One model in both systems.

    overrides: attnlab's.
    its_class: of yoyodyne, in yoyodyne.models, with its settings.
    """

    overrides: tuple[str, ...]
    its_class: str
    its_settings: Mapping[str, Any]


MODELS = {
    "additive attention": Pair(
        (*ADDITIVE, "model.decoder.context=cell", "model/readout=state"),
        "SoftAttentionLSTMModel",
        {},
    ),
    "pointer-generator": Pair(
        (*ADDITIVE, "model/readout=plain", "model/output=pointer_generator"),
        "PointerGeneratorLSTMModel",
        {},
    ),
    "hard attention": Pair(
        (*HARD, "model/output=hard_attention"),
        "HardAttentionLSTMModel",
        {"enforce_monotonic": False},
    ),
    "hard monotonic attention": Pair(
        (*HARD, "model/output=hard_monotonic_attention"),
        "HardAttentionLSTMModel",
        {"enforce_monotonic": True},
    ),
}

WEIGHTS = {
    "1.5-entmax": ("model/normaliser=entmax", "model.normaliser.alpha=1.5"),
    "1.3-entmax": ("model/normaliser=entmax", "model.normaliser.alpha=1.3"),
    "sparsemax": ("model/normaliser=sparsemax",),
}
# Rows and source tokens: of Multi30k's batches, and of long sentences.
SHAPES = ((896, 14), (896, 50), (896, 400))
CALLS, PASSES = 10, 5
DURATION = "microseconds"


def prepared_dates() -> tuple[Path, Path]:
    """The dates, prepared by attnlab, and a folder with the same pairs as yoyodyne reads them."""
    from attnlab.data.prepared import PreparedData

    prepared, text = WORK / "dates", WORK / "dates_text"
    run_attnlab("prepare.py", *DATA, f"paths.data={prepared}")
    split = PreparedData(prepared).split("train")
    text.mkdir(parents=True, exist_ok=True)
    pairs = (f"{split.source_text(row)}\t{split.target_text(row)}\n" for row in range(len(split)))
    (text / "train.tsv").write_text("".join(pairs), encoding="utf-8")
    return prepared, text


def train_yoyodyne(name: str, pair: Pair, text: Path, steps: int, warm_up: int) -> Measured:
    job = {
        **SIZES,
        "class": pair.its_class,
        "settings": pair.its_settings,
        "text": str(text),
        "model": str(WORK / "models" / f"yoyodyne-{slug(name)}"),
        "steps": steps,
        "warm_up": warm_up,
    }
    found = run_job("yoyodyne", job)
    return {
        SPEED: found["tokens"] / found["cpu_seconds"],
        "parameters": found["parameters"],
        "tokens": found["tokens"],
    }


def run_job(environment: str, job: Mapping[str, Any]) -> dict[str, float]:
    """What the runner of an environment measured, in a process of its own."""
    runner = ROOT / "benchmarks" / "peers" / f"{environment}_runner.py"
    _, said = run_or_exit(python_of(environment), runner, json.dumps(job))
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    return found


def normaliser(weights: str) -> nn.Module:
    """attnlab's layer that makes weights of scores."""
    from attnlab.experiment.composition import compose

    experiment = compose([*SHARED, *ADDITIVE, *WEIGHTS[weights]])
    sizes = {"source_vocabulary_size": 10, "target_vocabulary_size": 10}
    model = experiment.model(**sizes, padding=experiment.padding)
    found: nn.Module = model.decoder.attention.normaliser
    return found


def time_attnlab(weights: str, shape: tuple[int, int]) -> Measured:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = normaliser(weights)
    scores = torch.randn(shape, requires_grad=True)
    gradient = torch.randn(shape)
    least = float("inf")
    for _ in range(PASSES):
        start = time.process_time()
        for _ in range(CALLS):
            scores.grad = None
            layer(scores).backward(gradient)
        least = min(least, (time.process_time() - start) / CALLS)
    return {DURATION: 1e6 * least}


def time_entmax(weights: str, shape: tuple[int, int]) -> Measured:
    job = {"weights": weights, "shape": shape, "calls": CALLS, "passes": PASSES}
    return run_job("entmax", job)


def contestants(only: list[str], steps: int, warm_up: int) -> dict[str, Callable[[], Measured]]:
    """Who takes part, by name; see `--only`."""
    every: dict[str, Callable[[], Measured]] = {}
    prepared, text = WORK / "dates", WORK / "dates_text"
    for name, pair in MODELS.items():
        overrides = (*SHARED, *pair.overrides)
        every[f"{name} · {OURS}"] = partial(
            train_attnlab, f"dates {name}", overrides, prepared, steps, warm_up
        )
        every[f"{name} · {UNSORTED}"] = partial(
            train_attnlab,
            f"dates {name} unsorted",
            (*overrides, "training.batching.bucketed=false"),
            prepared,
            steps,
            warm_up,
        )
        every[f"{name} · {THEIRS}"] = partial(train_yoyodyne, name, pair, text, steps, warm_up)
    for weights in WEIGHTS:
        for shape in SHAPES:
            name = named(weights, shape)
            every[f"{name} · {OURS}"] = partial(time_attnlab, weights, shape)
            every[f"{name} · {THEIRS}"] = partial(time_entmax, weights, shape)
    taking_part = chosen(every, only)
    check_environments(taking_part)
    if any(name.partition(" · ")[0] in MODELS for name in taking_part):
        prepared_dates()
    return taking_part


def named(weights: str, shape: tuple[int, int]) -> str:
    rows, tokens = shape
    return f"{weights} of {rows} x {tokens} scores"


def check_environments(names: Mapping[str, object]) -> None:
    """Raise SystemExit if a system is not installed, before anything is measured in vain."""
    of_models = [name.partition(" · ")[0] in MODELS for name in names]
    wanted = (["yoyodyne"] if any(of_models) else []) + ([] if all(of_models) else ["entmax"])
    for environment in wanted:
        if not python_of(environment).exists():
            sys.exit(
                f"not installed: {environment}; python benchmarks/peers/install.py --only "
                f"{environment}"
            )


def trained(found: Rounds) -> list[Row]:
    """A line for each model that both systems trained."""
    rows: list[Row] = []
    for name in MODELS:
        ours, unsorted, theirs = (f"{name} · {who}" for who in (OURS, UNSORTED, THEIRS))
        if ours in found.of and unsorted in found.of and theirs in found.of:
            parameters = found.median(ours, "parameters") / found.median(theirs, "parameters")
            rows.append(
                {
                    "model": name,
                    "times as fast as yoyodyne": found.ratio(ours, theirs, SPEED),
                    "not sorted": found.ratio(unsorted, theirs, SPEED),
                    SPEED: found.median(ours, SPEED),
                    "yoyodyne's": found.median(theirs, SPEED),
                    "parameters, % of theirs": f"{100 * (parameters - 1):+.1f}",
                    "spread %": found.spread(ours, SPEED),
                    "yoyodyne's spread %": found.spread(theirs, SPEED),
                }
            )
    return rows


def weighted(found: Rounds) -> list[Row]:
    """A line for each kind of weights and each shape."""
    rows: list[Row] = []
    for weights in WEIGHTS:
        for shape in SHAPES:
            name = named(weights, shape)
            ours, theirs = f"{name} · {OURS}", f"{name} · {THEIRS}"
            if ours in found.of and theirs in found.of:
                rows.append(
                    {
                        "weights": name,
                        "times as fast as entmax": found.ratio(theirs, ours, DURATION),
                        DURATION: found.median(ours, DURATION),
                        "entmax's": found.median(theirs, DURATION),
                    }
                )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_only(parser)
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--steps", type=at_least_one, default=60)
    parser.add_argument("--warm-up", type=at_least_one, default=20)
    args = parser.parse_args()
    check_steps(parser, args)
    limit_threads()
    found = measure(contestants(args.only, args.steps, args.warm_up), args.rounds)
    rounds = f"medians of {args.rounds} rounds; a ratio is taken within a round"
    if rows := trained(found):
        report("members", rows, [f"{args.steps} steps after {args.warm_up}, {rounds}"])
    if rows := weighted(found):
        report("weights", rows, [f"a forward and a backward pass, {rounds}"])


if __name__ == "__main__":
    main()
