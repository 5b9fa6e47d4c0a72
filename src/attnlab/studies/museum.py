"""The table of the museum of mistakes: what each fault does, whose it was, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.config.binding import bind
from attnlab.config.choices import conf_file, place_of_group
from attnlab.config.params import value_at
from attnlab.faults.fault import Fault

HEADINGS = ("fault", "what is wrong", "whose mistake it was", "what it costs", "how one notices it")
NOT_MEASURED = "not measured yet"
INTRODUCTION = """Fifteen mistakes that lessons, tutorials and toolkits made, each a choice beside
the right way. Put one into any experiment, and everything else stays as it was: the weights that
training starts with, the batches, the search.

```sh
python pipelines/train.py data=copy fault=softmax_over_batch
python pipelines/train.py -m data=copy fault=none,softmax_over_batch seed=1,2,3
```

The cost is by how much the faulty model is worse than the right one of the same seed: its loss or
error rate higher, its share of right sequences lower; of a fault that is in the measuring, by how
much the measured figure is off. Intervals are of 95 %. In bold is what was asked, with its outcome
after a correction for fifteen questions. What a mistake costs depends on the data: these are
sequences to copy, in batches of random lengths."""
REACH = """## What a fault reaches

A faulty model is one wherever it goes: in the validation, in `evaluate.py`, in `attnlab translate`
and in the explorer, after a resumed training as after one that nobody stopped; a fault of the loss
or of what is measured is in the training, the validations and the evaluations alone. The fault
stands first in the name of the run, of the model and of the report, is a param of the run in
MLflow, and loading the model warns of it. What follows the formulas of a right model (the
explorer's *One step*, exported pages) refuses a faulty one, and so do CUDA graphs. A part with a
fault is none of those that are [made faster](architecture.md#add-something), so that no faster
path goes around it. A fault that would change nothing is refused: `fault=relu_for_tanh` with a
score that has no tanh, `fault=directions_mixed` with one direction.

The faults are [in `src/attnlab/faults`](../src/attnlab/faults), a file each, with the wrong
equation and the right one. They are put into a model from outside, after it is built: none of its
own code knows of them. [`attnlab inspect`](inspect.md) looks for such mistakes in *your* attention
module; where it knows the fault, its name for it stands in the last column."""


def row(name: str, cost: str) -> list[str]:
    """The row of the fault with this name; `cost` is in Markdown."""
    fault: Fault = bind(
        value_at(conf_file("fault", name).values, place_of_group("fault")), Fault, "model.fault"
    )
    noticed = fault.noticed
    if fault.inspected:
        noticed = f"{noticed} `attnlab inspect`: *{fault.inspected}*."
    return [f"`{name}`", fault.does, fault.made_by, cost, noticed]


def cost(expected: Sequence[Sequence[str]], study: str) -> str:
    """What a study found, of the rows of its expectations; the primary ones are in bold.

    A row: what was expected, the measure, the difference, what was asked of it, how it was tested,
    its p, and the outcome.
    """
    found = []
    for says, measure, difference, *_, outcome in expected:
        text = f"{measure} {difference}"
        is_primary = says.startswith("**")
        found.append(f"**{text}**, {outcome}" if is_primary else text)
    return f"[{'<br>'.join(found)}](#{study})"
