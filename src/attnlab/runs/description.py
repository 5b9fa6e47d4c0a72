"""The description of a run in MLflow, Markdown.

It has its note, the comparison of a sweep, the result, the data, and the commands that repeat it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from attnlab.config.params import NO_REVISION, short_params
from attnlab.evaluation.measures import FACTS
from attnlab.runs.run_folder import RunRecord, RunState

_MOST = 8  # metrics of a split of which nothing says which ones matter


def description(state: RunState, metrics: Mapping[str, float]) -> str:
    """metrics: the last value of each."""
    result = state.result
    if result is None:
        result = _result(metrics, state.record.main_metrics)
    parts = (state.record.note, state.comparison, result, _data(state.record), _commands(state))
    return "\n\n".join(filter(None, parts))


def main_metrics(metrics: Mapping[str, float], split: str, main: Sequence[str]) -> dict[str, float]:
    """{`bleu`: ...} of `test/bleu`, `validation/free_running/bleu`, ..., in the order of `main`.

    main: names of metrics; of a split that has none of them, the first of all are returned.
    """
    of_split = {}
    for name, value in metrics.items():
        if name.startswith(f"{split}/"):
            _, _, metric = name.rpartition("/")
            of_split[metric] = value
    found = {name: of_split[name] for name in main if name in of_split}
    if found:
        return found
    measured = [name for name in of_split if name not in FACTS]
    return {name: of_split[name] for name in measured[:_MOST]}


def _result(metrics: Mapping[str, float], main: Sequence[str]) -> str:
    """The main metrics of the test split, or those of the validation while there are none."""
    for split, label in (("test", "Test"), ("validation", "Latest validation")):
        found = main_metrics(metrics, split, main)
        if found:
            shown = " · ".join(f"{name} {value:.4g}" for name, value in found.items())
            return f"**{label}:** {shown}"
    return ""


def _data(record: RunRecord) -> str:
    """The dataset, its rows and the start of its digest, in Markdown.

    For example `**Data:** dates · train 8000, validation 1000, test 1000 rows · SHA-256 8c79...`; a
    tag has the whole digest.
    """
    if not record.data_digest:
        return ""
    rows = ", ".join(f"{split} {count}" for split, count in record.data_facts.items())
    name = short_params(record.config).get("data", "data")
    return f"**Data:** {name} · {rows} rows · SHA-256 `{record.data_digest[:16]}`..."


def _commands(state: RunState) -> str:
    """A block of shell commands, a line for each override; empty where nothing repeats the run."""
    if not state.record.command:
        return ""
    program, words = state.record.command[:2], map(shlex.quote, state.record.command[2:])
    command = " \\\n  ".join([shlex.join(program), *words])
    return "\n".join(["```sh", *_code_version(state.origin), command, "```"])


def _code_version(origin: Mapping[str, str]) -> list[str]:
    """Lines of a shell that check out the code that ran, or a comment that names it."""
    revision = origin.get("mlflow.source.git.commit")
    if revision is None:
        name = origin.get("git_revision", "no git checkout").removeprefix(NO_REVISION)
        return [f"# {name}"]
    checkout = f"git checkout {revision}"
    if origin.get("git_dirty") == "false":
        return [checkout]
    return ["# there were changes that were not committed", checkout]
