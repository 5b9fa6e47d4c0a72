"""The Markdown pages of claims and replications.

Each has a table of all of them, and a section for each that was run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.project import pipeline_command

RULES = {
    "claims": (
        "The lessons' claims, tested",
        "Each claim is one or more expectations, written before the run in "
        "`pipelines/studies/claims`. An expectation holds where the whole 95 % interval of the "
        "difference (Welch, over seeds) is as asked, does not hold where none of it is, and is "
        "undecided in between. A claim *holds* where all its expectations do, and *in part* where "
        "some do.",
        "expectation",
    ),
    "replications": (
        "Published results, replicated",
        "Each card (`pipelines/studies/replications`) was written before its run, with the "
        "published figures and the tolerance. *Reproduced*: the mean over the seeds is within the "
        "tolerance of every figure, or better. *Direction only*: that fails, but every published "
        "effect holds (the whole 95 % interval of the difference, Welch, is as asked). *Not "
        "reproduced*: neither. A card without published figures reaches *direction only* at most.",
        "published effect",
    ),
}


def study_page(kind: str, studies: Mapping[str, Mapping[str, Any]]) -> str:
    """The page as Markdown.

    studies: {name: the keys of the study and, where it was run, of its result}.
    """
    title, rule, effect = RULES[kind]
    intervals = (
        "Figures are means over seeds 1, 2, ..., with 95 % intervals (Student); a verdict needs "
        "three seeds. The bands of curves reach from the least to the greatest seed. Metrics are "
        "those of the test split, along the steps of a training those of the validation split. "
        "`data.path` is the folder of the study's corpus, for SCAN and SIGMORPHON the one that "
        "holds theirs."
    )
    summary, sections = [], []
    for name, study in studies.items():
        summary.append(_summary_row(name, study))
        if "verdict" in study:
            sections.append(_section(kind, name, study, effect))

    summary_table = table(["study", "verdict", "seeds", "CPU minutes"], summary)
    return "\n\n".join([f"# {title}", f"{rule} {intervals}", summary_table, *sections]) + "\n"


def _summary_row(name: str, study: Mapping[str, Any]) -> list[str]:
    """The row of a study in the table of all of them."""
    if "verdict" not in study:
        return [study["title"], "not run", "–", "–"]
    link = f"[{study['title']}](#{name})"
    return [link, study["verdict"], str(study["run_seeds"]), f"{study['cpu_minutes']:.0f}"]


def _section(kind: str, name: str, study: Mapping[str, Any], effect: str) -> str:
    seeds = study["run_seeds"]
    as_planned = seeds == study["seeds"]
    # What was found was written for the planned seeds.
    found = study["found"] if as_planned else ""
    seeds_option = [] if as_planned else [f"--seeds {seeds}"]
    arguments = " ".join([name, *seeds_option, *study["run_settings"]])
    cpu_minutes = f"{study['cpu_minutes']:.0f}"
    facts = f"Seeds: {seeds}. CPU minutes of training: {cpu_minutes}. {study['machine']}."
    parts = [
        f'<a id="{name}"></a>\n## {study["title"]}',
        f"**{study['verdict'].capitalize()}.** {found}".strip(),
        study["text"].strip(),
        f"```sh\n{pipeline_command('replicate')} {arguments}\n```\n\n{facts}",
    ]
    if study["source"]:
        parts.append(f"Published: {study['source'].strip()}")
    if study["source"] and study["differs"]:
        parts.append(f"What differs here: {study['differs'].strip()}")
    if study["published_table"]:
        headings = ["system", "measure", "published", "ours", "tolerance", "reached"]
        parts.append(table(headings, study["published_table"]))
    if study["expectations"]:
        headings = [effect, "measure", "difference", "asked", "outcome"]
        parts.append(table(headings, study["expectations"]))
    if study["table"]:
        parts.append(table(study["headings"], study["table"]))
    parts.append(f"![{study['title']}](studies/{name}/figure.png)")
    return "\n\n".join(part for part in parts if part)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
