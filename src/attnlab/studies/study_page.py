"""The Markdown pages of claims and replications.

Each has a table of all of them, and a section for each that was run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.files import atomic_file
from attnlab.project import STUDIES, pipeline_command
from attnlab.studies.study import Study, read_study


@dataclass(frozen=True)
class Kind:
    """A kind of studies, which share a page.

    rule: how their verdicts follow from what was measured.
    effect: what the first column of a table of expectations has.
    """

    title: str
    rule: str
    effect: str


# By the folder of the studies.
KINDS = {
    "claims": Kind(
        title="The lessons' claims, tested",
        rule="Each claim is one or more expectations, written before the run in "
        "`pipelines/studies/claims`. An expectation holds where the whole 95 % interval of the "
        "difference (Welch, over seeds) is as asked, does not hold where none of it is, and is "
        "undecided in between. A claim *holds* where all its expectations do, and *in part* where "
        "some do.",
        effect="expectation",
    ),
    "replications": Kind(
        title="Published results, replicated",
        rule="Each card (`pipelines/studies/replications`) was written before its run, with the "
        "published figures and the tolerance. *Reproduced*: the mean over the seeds is within the "
        "tolerance of every figure, or better. *Direction only*: that fails, but every published "
        "effect holds (the whole 95 % interval of the difference, Welch, is as asked). *Not "
        "reproduced*: neither. A card without published figures reaches *direction only* at most.",
        effect="published effect",
    ),
}


@dataclass(frozen=True, eq=False)
class ShownStudy:
    """A study with its result.

    name: of its file.
    result: the content of its result.json; empty where it was not run.
    """

    name: str
    study: Study
    result: Mapping[str, Any]

    @property
    def was_run(self) -> bool:
        return "verdict" in self.result

    @property
    def cpu_minutes(self) -> str:
        return f"{self.result['cpu_minutes']:.0f}"


def write_page(path: Path, into: Path) -> Path | None:
    """The page of all claims or all replications, those that were not run among them.

    path: of one of them; a study of the user's own is on no page, and None is returned.
    """
    if path.parent.parent != STUDIES:
        return None
    kind = path.parent.name
    studies = []
    for file in sorted((STUDIES / kind).glob("*.yaml")):
        result = _read_result(into / "studies" / file.stem / "result.json")
        studies.append(ShownStudy(file.stem, read_study(file), result))

    page = into / f"{kind}.md"
    with atomic_file(page) as temporary:
        temporary.write_text(study_page(KINDS[kind], studies), encoding="utf-8")
    return page


def _read_result(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    return json.loads(path.read_text(encoding="utf-8"))


def study_page(kind: Kind, studies: Sequence[ShownStudy]) -> str:
    """The page as Markdown."""
    intervals = (
        "Figures are means over seeds 1, 2, ..., with 95 % intervals (Student); a verdict needs "
        "three seeds. The bands of curves reach from the least to the greatest seed. Metrics are "
        "those of the test split, along the steps of a training those of the validation split. "
        "`data.path` is the folder of the study's corpus, for SCAN and SIGMORPHON the one that "
        "holds theirs."
    )
    summary = table(
        ["study", "verdict", "seeds", "CPU minutes"], [_summary_row(shown) for shown in studies]
    )
    sections = [_section(kind, shown) for shown in studies if shown.was_run]
    parts = [f"# {kind.title}", f"{kind.rule} {intervals}", summary, *sections]
    return "\n\n".join(parts) + "\n"


def _summary_row(shown: ShownStudy) -> list[str]:
    """The row of a study in the table of all of them."""
    title, result = shown.study.title, shown.result
    if not shown.was_run:
        return [title, "not run", "–", "–"]
    link = f"[{title}](#{shown.name})"
    return [link, result["verdict"], str(result["run_seeds"]), shown.cpu_minutes]


def _section(kind: Kind, shown: ShownStudy) -> str:
    """What was asked and found, with the command, the tables and the figure."""
    study, result = shown.study, shown.result
    # What was found was written for the planned seeds.
    found = study.found if result["run_seeds"] == study.seeds else ""
    parts = [
        f'<a id="{shown.name}"></a>\n## {study.title}',
        f"**{result['verdict'].capitalize()}.** {found}".strip(),
        study.text.strip(),
        _how_it_was_run(shown),
    ]
    if study.source:
        parts.append(f"Published: {study.source.strip()}")
    if study.source and study.differs:
        parts.append(f"What differs here: {study.differs.strip()}")

    if result["published_table"]:
        headings = ["system", "measure", "published", "ours", "tolerance", "reached"]
        parts.append(table(headings, result["published_table"]))
    if result["expectations"]:
        headings = [kind.effect, "measure", "difference", "asked", "outcome"]
        parts.append(table(headings, result["expectations"]))
    if result["table"]:
        parts.append(table(result["headings"], result["table"]))
    parts.append(f"![{study.title}](studies/{shown.name}/figure.png)")
    return "\n\n".join(part for part in parts if part)


def _how_it_was_run(shown: ShownStudy) -> str:
    """The command, the seeds, the cost and the machine."""
    result = shown.result
    seeds = result["run_seeds"]
    words = [pipeline_command("replicate"), shown.name]
    if seeds != shown.study.seeds:
        words.append(f"--seeds {seeds}")
    command = " ".join([*words, *result["run_settings"]])
    return (
        f"```sh\n{command}\n```\n\n"
        f"Seeds: {seeds}. CPU minutes of training: {shown.cpu_minutes}. {result['machine']}."
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
