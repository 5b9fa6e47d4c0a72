"""Time of a training step by operation, from torch's profiler.

    python benchmarks/step_profile.py --data <folder with Multi30k, tokenised> [--steps 30]

Of the loop in bare_loop.py, each kind of operation with its share of the time of all of them and
how often a step asks for it. The profiler adds a microsecond or so to every operation, so that many
small ones look dearer than they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice
from pathlib import Path

from arguments import at_least_one, corpus_parser
from configuration import CONTESTANTS
from given_text import prepared_text
from own_process import in_own_process
from process_cost import limit_threads
from results import Row, report
from running import chosen

WARM_UP = 20
# An operation is of the first kind whose pattern matches its name without the namespace (`aten::`).
KINDS = {
    "matrix products": r"_?(add)?(b?mm|mv_?)|_linear_pointwise|baddbmm_?",
    "recurrences": r"mkldnn_rnn_layer(_backward)?|_thnn_.*",
    "softmax, loss, gathers": (
        r"_log_softmax.*|_softmax.*|exp_?|gather|scatter_add_"
        r"|_OutputLoss(Backward)?|nll_loss.*"
    ),
    "copies, casts, joins": (
        r"copy_|_to_copy|cat|clone|contiguous|index.*|stack|fill_|zero_"
        r"|embedding_.*_backward"
    ),
    "dropout's draws": r"bernoulli_?|native_dropout.*",
    "sums": r"sum|mean",
    "optimiser and clipping": r"_fused_adamw?_|Optimizer\..*|linalg_vector_norm|_foreach_.*",
    "element by element": (
        r"(mul|add|sub|rsub|div|neg|tanh|sigmoid|masked_fill|addcmul)_?(_backward)?"
    ),
}
REST = "shapes, memory, autograd"


def kind(name: str) -> str:
    """The kind of an operation that the profiler calls `name`, such as `aten::mm`."""
    bare = name.rpartition("::")[2]
    return next((kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, bare)), REST)


def profiled(overrides: list[str], prepared: Path, steps: int) -> list[tuple[str, float, float]]:
    """(name, microseconds, calls) of every operation, for one step."""
    from torch.profiler import ProfilerActivity, profile

    from bare_loop import BareLoop

    loop = BareLoop(overrides, prepared, WARM_UP + steps)
    batches = loop.training_batches()
    for batch in islice(batches, WARM_UP):
        loop.step(batch)
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for batch in batches:
            loop.step(batch)
    return [
        (one.key, one.self_cpu_time_total / steps, one.count / steps)
        for one in found.key_averages()
    ]


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument(
        "--only", nargs="+", default=["Bahdanau fp32", "Bahdanau bf16"], help="parts of their names"
    )
    parser.add_argument("--steps", type=at_least_one, default=30)
    args = parser.parse_args()
    limit_threads()
    prepared, _ = prepared_text(args.data)
    rows: list[Row] = []
    for contestant in chosen(
        {contestant.name: contestant for contestant in CONTESTANTS}, args.only
    ).values():
        overrides = [*contestant.overrides, f"data.path={args.data.resolve()}"]
        operations = in_own_process(profiled, overrides, prepared, args.steps)
        microseconds, calls = defaultdict[str, float](float), defaultdict[str, float](float)
        largest: dict[str, str] = {}
        for name, taken, count in sorted(operations, key=lambda operation: operation[1]):
            microseconds[kind(name)] += taken
            calls[kind(name)] += count
            largest[kind(name)] = name  # the last one takes the most
        total = sum(microseconds.values())
        rows += [
            {
                "contestant": contestant.name,
                "kind": of,
                "% of the time": 100 * taken / total,
                "ms a step": taken / 1000,
                "calls a step": round(calls[of]),
                "most in": largest[of],
            }
            for of, taken in sorted(microseconds.items(), key=lambda item: -item[1])
        ]
    report(
        "step_profile",
        rows,
        [f"{args.steps} steps after {WARM_UP}, on shuffled buckets of Multi30k"],
    )


if __name__ == "__main__":
    main()
