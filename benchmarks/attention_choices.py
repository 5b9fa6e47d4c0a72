"""Cost of a training step with some scores, all kinds of weights and histories, beside Bahdanau's.

    python benchmarks/attention_choices.py [--length 14] [--rounds 5] [--only forward entmax]

The model of `experiment=multi30k_bahdanau` takes forward and backward passes of 64 made sentence
pairs, each side `--length` tokens long, over a vocabulary of 6,000 words. A round times all choices
one after the other, three passes each. What counts is the least of all passes, for other programs
only add to it, and how many times that of the default (his score, softmax, no history) it is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

from arguments import step_parser
from configuration import BAHDANAU
from process_cost import limit_threads
from results import Row, report

DEFAULT = "default"
VOCABULARY = 6000
SENTENCES = 64
PASSES = 3
LEFT_OUT = {"normaliser": ("softmax",), "history": ("none",)}
# The scores that have a `size`, which the experiment sets.
SCORES = ("concat", "delta_rule", "linear_attention", "normed_bahdanau")


def choices() -> dict[str, tuple[str, ...]]:
    """{name: overrides} of scores and of all files of the other groups, the default first."""
    from attnlab.project import CONF

    found: dict[str, tuple[str, ...]] = {DEFAULT: ()}
    for score in SCORES:
        found[f"attention={score}"] = (f"model/attention={score}",)
    for group, left_out in LEFT_OUT.items():
        for file in sorted((CONF / "model" / group).glob("*.yaml")):
            if file.stem not in left_out:
                found[f"{group}={file.stem}"] = (f"model/{group}={file.stem}",)
    return found


class Timed:
    """A model of one choice, in training; of: the experiment that it changes."""

    def __init__(self, overrides: Sequence[str], of: Sequence[str] = BAHDANAU) -> None:
        import torch

        from attnlab.experiment.composition import compose
        from attnlab.model.fast import speed_up

        experiment = compose([*of, "hardware.precision=32", "data.path=unread", *overrides])
        experiment.use_hardware()
        torch.manual_seed(0)
        sizes = {"source_vocabulary_size": VOCABULARY, "target_vocabulary_size": VOCABULARY}
        model = experiment.model(**sizes, padding=experiment.padding)
        self.model = (speed_up(model) if experiment.hardware.fast else model).train()
        self.is_half_precision = experiment.hardware.precision == "bf16"

    def milliseconds(self, batch: Any) -> float:
        """Processor time of a forward and a backward pass, the least of some."""
        taken = []
        for _ in range(PASSES):
            self.model.zero_grad()
            start = time.process_time()
            self._loss(batch).backward()
            taken.append(1000 * (time.process_time() - start))
        return min(taken)

    def _loss(self, batch: Any) -> Any:
        import torch

        from attnlab.training.loss import summed_nll

        with torch.autocast("cpu", torch.bfloat16, enabled=self.is_half_precision):
            unrolled = self.model(batch)
            loss = summed_nll(self.model.output, unrolled, batch)
        if unrolled.history_loss is not None:
            loss = loss + unrolled.history_loss
        return loss


def made_batch(source: int, sentences: int = SENTENCES, target: int | None = None) -> Any:
    """Sentence pairs of random words.

    source, target: tokens of a side, `<eos>` counted; a target is as long as its source without.
    """
    import torch

    from attnlab.batch import Padding
    from attnlab.data.padding import make_batch

    generator = torch.Generator().manual_seed(0)

    def words(tokens: int) -> list[list[int]]:
        drawn = torch.randint(4, VOCABULARY, (sentences, tokens - 1), generator=generator)
        return drawn.tolist()

    sources = words(source)
    targets = words(target or source)
    return make_batch(sources, targets, Padding())


def timed_rounds(
    timed: dict[str, Timed], length: int, rounds: int, sentences: int = SENTENCES
) -> list[dict[str, float]]:
    """The milliseconds of a step of each, of each round, for sentences of a length."""
    batch = made_batch(length, sentences)
    taken = []
    for number in range(1, rounds + 1):
        taken.append({name: one.milliseconds(batch) for name, one in timed.items()})
        print(f"{length} tokens: round {number} of {rounds}", flush=True)
    return taken


def least_of(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The least milliseconds of each model."""
    return {name: min(each[name] for each in rounds) for name in rounds[0]}


def chosen(
    choices: dict[str, tuple[str, ...]], default: str, only: list[str] | None
) -> dict[str, Timed]:
    """The models of the default and of the choices whose names have one of these parts."""
    return {
        name: Timed(overrides)
        for name, overrides in choices.items()
        if name == default or not only or any(part in name for part in only)
    }


def arguments_of(doc: str | None, of_what: str) -> argparse.Namespace:
    """The arguments of a benchmark of choices, such as those "of encoders"."""
    parser = step_parser(doc, rounds=5)
    parser.add_argument("--only", nargs="+", help=f"parts of the names of {of_what}")
    return parser.parse_args()


def main() -> None:
    args = arguments_of(__doc__, "choices")
    limit_threads()
    timed = chosen(choices(), DEFAULT, args.only)
    rounds = timed_rounds(timed, args.length, args.rounds)

    least = least_of(rounds)
    rows: list[Row] = [
        {"choice": name, "times the default": ms / least[DEFAULT], "ms a step": ms}
        for name, ms in least.items()
    ]
    report(f"attention_choices_{args.length}", rows)


if __name__ == "__main__":
    main()
