"""What Lightning, MLflow, callbacks and plots cost over a bare loop around the same model.

    python benchmarks/overhead.py --data <folder with Multi30k, tokenised> [--steps 240] [--rounds 3]

Both train the same model on the same batches in the same order. attnlab's way is `pipelines/train.py` with everything
on; the bare way is the loop in this file, in a process of its own. `steps` compares the training steps alone,
`validation too` adds half-way a validation: forward pass and greedy search in both, and in attnlab's also the metrics,
the pictures, the checkpoints and their delivery to MLflow.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from configuration import BAHDANAU, PRECISIONS, ROOT, WORK
from given_text import prepared_text
from own_process import in_own_process
from process_cost import limit_threads, this_process
from results import Row, report
from running import run_attnlab
from side_by_side import Measured, measure
from spool import counters, newest_point

EVERY = 10  # steps between two records of attnlab's counters
STEPS, ALL = "steps, CPU-s", "validation too, CPU-s"


def overrides(data: Path, prepared: Path, steps: int, precision: str) -> list[str]:
    return [
        *BAHDANAU,
        *PRECISIONS[precision],
        f"data.path={data.resolve()}",
        "training.max_epochs=null",
        f"training.max_steps={steps}",
        f"training.validate_every={steps // 2}",
        f"training.log_every={EVERY}",
        f"paths.runs={WORK / 'overhead' / precision}",
        f"paths.data={prepared}",
        "chain=false",
        "rerun=true",
    ]


def whole(data: Path, prepared: Path, steps: int, precision: str) -> Measured:
    """attnlab's own way. The validation behind the last step stands in no record; that half-way does."""
    run_attnlab("train.py", *overrides(data, prepared, steps, precision))
    metrics = counters(newest_point(WORK / "overhead" / precision))[-1]["metrics"]
    training = metrics["time/training_cpu_seconds"]
    return {STEPS: training, ALL: training + metrics["time/validation_cpu_seconds"]}


def bare(data: Path, prepared: Path, steps: int, precision: str) -> Measured:
    """The loop that a user would write around the model."""
    import sys

    sys.path.insert(0, str(ROOT / "pipelines"))
    import torch

    from attnlab.training.loss import summed_loss, summed_nll
    from composed import CONF, ConfigSource

    with ConfigSource(CONF, "config") as source:
        experiment = source.check(overrides(data, prepared, steps, precision))
    experiment.use_hardware()
    opened: Any = experiment.task.open_data(prepared)
    training, padding = experiment.training, experiment.padding
    torch.manual_seed(experiment.seed)
    model = experiment.model(**experiment.task.sizes(opened), padding=padding)
    optimizer = training.optimizer(model.parameters())
    schedule = training.schedule(optimizer, steps, "", "max")["scheduler"]
    half = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")

    def batches(name: str, shuffle: bool) -> Any:
        from attnlab.data.sampler import BatchSampler

        split = opened.split(name)
        lengths = split.source_lengths, split.target_lengths
        for rows in BatchSampler(*lengths, training.batching, seed=experiment.seed, shuffle=shuffle):
            yield split.batch(rows, padding)

    def validate() -> float:
        before = this_process().cpu_seconds
        model.eval()
        with torch.no_grad(), half:
            for batch in batches("validation", shuffle=False):
                summed_nll(model.output, model(batch), batch)
                training.validation_search(model, batch.source, batch.source_mask)
        model.train()
        return this_process().cpu_seconds - before

    start, validation, done = this_process().cpu_seconds, 0.0, 0
    while done < steps:
        for batch in batches("train", shuffle=True):
            with half:
                loss = summed_loss(model.output, model(batch), batch, training.label_smoothing).loss
            optimizer.zero_grad()
            (loss / batch.num_target_tokens).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), training.gradient_clip)
            optimizer.step()
            schedule.step()
            done += 1
            if done == steps // 2:
                validation = validate()
            if done == steps:
                break
    total = this_process().cpu_seconds - start
    return {STEPS: total - validation, ALL: total}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the corpus, as data.path of train.py")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", nargs="+", choices=list(PRECISIONS), default=list(PRECISIONS))
    args = parser.parse_args()
    if args.steps < 2 * EVERY or args.steps % (2 * EVERY):
        parser.error(f"--steps must be a multiple of {2 * EVERY}, got {args.steps}")
    limit_threads()
    prepared, _ = prepared_text(args.data)
    rows: list[Row] = []
    for precision in args.precision:
        found = measure(
            {
                "attnlab": lambda p=precision: whole(args.data, prepared, args.steps, p),  # type: ignore[misc]
                "bare": lambda p=precision: in_own_process(bare, args.data, prepared, args.steps, p),  # type: ignore[misc]
            },
            args.rounds,
        )
        for name in (STEPS, ALL):
            times = {who: found.median(who, name) for who in ("attnlab", "bare")}
            more = 100 * (found.ratio("attnlab", "bare", name) - 1)
            rows.append({"precision": precision, "what": name, **times, "overhead %": f"{more:+.1f}"})
    report("overhead", rows, [f"{args.steps} steps, medians of {args.rounds} rounds, ratios within a round"])


if __name__ == "__main__":
    main()
