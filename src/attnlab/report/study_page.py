"""The Markdown pages of claims and replications: a table of all of them, and a section for each that was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RULES = {
    "claims": (
        "The lessons' claims, tested",
        "Each claim is one or more expectations, written before the run in `pipelines/studies/claims`. An expectation "
        "holds where the whole 95 % interval of the difference (Welch, over seeds) lies on its side, does not hold "
        "where it lies on the other, and is undecided in between.",
        "expectation",
    ),
    "replications": (
        "Published results, replicated",
        "Each card (`pipelines/studies/replications`) was written before its run, with the published figures and the "
        "tolerance. *Reproduced*: the mean over the seeds is within the tolerance of every figure, or better. "
        "*Direction only*: that fails, but every published effect holds (the whole 95 % interval of the difference, "
        "Welch, lies on its side). *Not reproduced*: neither.",
        "published effect",
    ),
}


def study_page(kind: str, studies: Mapping[str, Mapping[str, Any]]) -> str:
    """The page as Markdown.

    studies: {name: the keys of the study and, where it was run, of its result}.
    """
    title, rule, effect = RULES[kind]
    intervals = (
        "Figures are means over seeds 1, 2, ... with 95 % intervals (Student); metrics are those of the test split."
    )
    summary = [
        [f"[{each['title']}](#{name})", each["verdict"], str(each["run_seeds"]), f"{each['cpu_minutes']:.0f}"]
        if "verdict" in each
        else [each["title"], "not run", "–", "–"]
        for name, each in studies.items()
    ]
    sections = [_section(kind, name, each, effect) for name, each in studies.items() if "verdict" in each]
    head = [f"# {title}", f"{rule} {intervals}", table(["study", "verdict", "seeds", "CPU minutes"], summary)]
    return "\n\n".join(head + sections) + "\n"


def _section(kind: str, name: str, study: Mapping[str, Any], effect: str) -> str:
    settings = "".join(f" {each}" for each in study["run_settings"])
    facts = f"{study['run_seeds']} seeds, {study['cpu_minutes']:.0f} CPU minutes of training; {study['machine']}."
    parts = [
        f'<a id="{name}"></a>\n## {study["title"]}',
        f"**{study['verdict'].capitalize()}.** {study['found'] or ''}".strip(),
        study["text"].strip(),
        f"```sh\npython pipelines/replicate.py {name}{settings}\n```\n\n{facts}",
    ]
    if study["source"]:
        parts.append(f"Published: {study['source'].strip()}")
        parts.append(f"What differs here: {study['differs'].strip()}" if study["differs"] else "")
    if study["published_table"]:
        headings = ["system", "measure", "published", "ours", "tolerance", "reached"]
        parts.append(table(headings, study["published_table"]))
    if study["expectations"]:
        parts.append(table([effect, "difference", "outcome"], study["expectations"]))
    if study["table"]:
        parts.append(table(study["headings"], study["table"]))
    parts.append(f"![{study['title']}](studies/{name}/figure.png)")
    return "\n\n".join(part for part in parts if part)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
