"""Cost of keeping how the attention forms, as a share of the whole training.

    python benchmarks/formed_attention.py --data <folder with Multi30k, tokenised> [--steps 454]

It trains `experiment=multi30k_bahdanau` with everything on and a validation at the end, as after
each epoch of the preset, which has 454 steps; with fewer steps a validation weighs more. It takes
the processor time of what is kept before the first step and at each validation: `maps` are the
translations of a few sentences with their attention, and the file that holds them, which the
explorer's view reads; `pictures` are what MLflow shows beside them. `training` is all that the
trainer's `fit` takes.
"""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

from arguments import at_least_one, corpus_parser
from configuration import BAHDANAU, PRECISIONS, ROOT, WORK
from given_text import prepared_text
from own_process import in_own_process
from process_cost import limit_threads
from results import Row, report


def overrides(data: Path, prepared: Path, steps: int, precision: str) -> list[str]:
    return [
        *BAHDANAU,
        *PRECISIONS[precision],
        f"data.path={data.resolve()}",
        "training.max_epochs=null",
        f"training.max_steps={steps}",
        f"training.validate_every={steps}",
        f"paths.runs={WORK / 'formed_attention' / precision}",
        f"paths.data={prepared}",
        "chain=false",
        "rerun=true",
    ]


class Clock:
    """Processor time of some functions of this process, by name, without those that they call."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._is_running = False

    def around(self, owner: Any, function: str, name: str, is_whole: bool = False) -> None:
        """Take the time of a function of a module or class; a whole has the others inside it."""
        timed = getattr(owner, function)
        self.seconds.setdefault(name, 0.0)
        self.calls.setdefault(name, 0)
        setattr(owner, function, self._timed(timed, name, is_whole))

    def _timed(self, function: Callable[..., Any], name: str, is_whole: bool) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            if self._is_running:
                return function(*arguments, **named)
            self._is_running = not is_whole
            start = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                self._is_running = False
                self.seconds[name] += time.process_time() - start
                self.calls[name] += 1

        return timed


def training(given: list[str]) -> tuple[dict[str, float], dict[str, int]]:
    """The seconds of a training and of what it keeps, and how often it does."""
    import pytorch_lightning as pl

    from attnlab.runs import pictures
    from attnlab.tasks.translation import hypotheses

    clock = Clock()
    clock.around(pl.Trainer, "fit", "training", is_whole=True)
    clock.around(hypotheses, "example_maps", "maps")
    clock.around(pictures, "save_maps", "files")
    clock.around(pictures, "write_heat_maps", "pictures")
    sys.argv = ["train.py", *given]
    with suppress(SystemExit):
        runpy.run_path(str(ROOT / "pipelines" / "train.py"), run_name="__main__")
    return clock.seconds, clock.calls


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--steps", type=at_least_one, default=454, help="454 are an epoch")
    parser.add_argument(
        "--precision", nargs="+", choices=list(PRECISIONS), default=list(PRECISIONS)
    )
    args = parser.parse_args()
    limit_threads()
    prepared, _ = prepared_text(args.data)
    rows: list[Row] = []
    for precision in args.precision:
        given = overrides(args.data, prepared, args.steps, precision)
        seconds, calls = in_own_process(training, given)
        kept = seconds["maps"] + seconds["files"]
        rows.append(
            {
                "precision": precision,
                "times": calls["maps"],
                "training, CPU-s": seconds["training"],
                "maps, CPU-s": kept,
                "maps %": 100 * kept / seconds["training"],
                "pictures, CPU-s": seconds["pictures"],
                "pictures %": 100 * seconds["pictures"] / seconds["training"],
            }
        )
    report("formed_attention", rows, [f"{args.steps} steps of multi30k_bahdanau"])


if __name__ == "__main__":
    main()
