"""Cost of Lightning, MLflow, callbacks and plots, compared with a bare loop around the same model.

    python benchmarks/overhead.py --data <folder with Multi30k, tokenised>
        [--steps 460] [--rounds 3]

Both train the same model on the same batches in the same order, at once and a second each in turn,
so that neither has a quieter machine. attnlab's way is `pipelines/train.py` with everything on; the
bare way is the loop in bare_loop.py. `steps` compares the training steps alone, `validation too`
adds half-way a validation: forward pass and greedy search in both, and in attnlab's also the
metrics, the pictures, the checkpoints and their delivery to MLflow. A validation for as many steps
as an epoch has is what the experiment's preset does; with fewer steps it weighs more. What comes
before the first step and after the last record (imports, MLflow's start, the last validation,
logging the model) is in neither. The bare loop has torch's own limit on oneDNN's kernels, attnlab
its lower one.
"""

from __future__ import annotations

from pathlib import Path

from arguments import at_least_one, corpus_parser
from configuration import BAHDANAU, PRECISIONS, WORK
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
    """The cost of attnlab's own training.

    The records contain the validation half-way, but not the one after the last step.
    """
    run_attnlab("train.py", *overrides(data, prepared, steps, precision))
    metrics = counters(newest_point(WORK / "overhead" / precision))[-1]["metrics"]
    training = metrics["time/training_cpu_seconds"]
    return {STEPS: training, ALL: training + metrics["time/validation_cpu_seconds"]}


def bare(data: Path, prepared: Path, steps: int, precision: str) -> Measured:
    """The loop that a user would write around the model."""
    from bare_loop import BareLoop

    loop = BareLoop(overrides(data, prepared, steps, precision), prepared, steps)
    start, validation = this_process().cpu_seconds, 0.0
    for done, batch in enumerate(loop.training_batches(), start=1):
        loop.step(batch)
        if done == steps // 2:
            before = this_process().cpu_seconds
            loop.validate()
            validation = this_process().cpu_seconds - before
    total = this_process().cpu_seconds - start
    return {STEPS: total - validation, ALL: total}


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--steps", type=at_least_one, default=460, help="454 are an epoch")
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument(
        "--precision", nargs="+", choices=list(PRECISIONS), default=list(PRECISIONS)
    )
    args = parser.parse_args()
    if args.steps % (2 * EVERY):
        parser.error(f"--steps must be a multiple of {2 * EVERY}, got {args.steps}")
    limit_threads()
    prepared, _ = prepared_text(args.data)
    rows: list[Row] = []
    for precision in args.precision:
        found = measure(
            {
                "attnlab": lambda p=precision: whole(args.data, prepared, args.steps, p),  # type: ignore[misc]
                "bare": lambda p=precision: in_own_process(
                    bare, args.data, prepared, args.steps, p
                ),  # type: ignore[misc]
            },
            args.rounds,
            by_slices=True,
        )
        for name in (STEPS, ALL):
            times = {who: found.median(who, name) for who in ("attnlab", "bare")}
            more = 100 * (found.ratio("attnlab", "bare", name) - 1)
            rows.append(
                {"precision": precision, "what": name, **times, "overhead %": f"{more:+.1f}"}
            )
    report(
        "overhead",
        rows,
        [f"{args.steps} steps, medians of {args.rounds} rounds, ratios within a round"],
    )


if __name__ == "__main__":
    main()
