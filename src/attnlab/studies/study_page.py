"""The Markdown pages of claims and replications.

Each has a table of all of them, and a section for each: what was found, or what is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.files import atomic_file
from attnlab.project import STUDIES, pipeline_command
from attnlab.studies import museum
from attnlab.studies.expectations import Finding, Outcome, finding_of_p
from attnlab.studies.registration import digest_of
from attnlab.studies.study import Study, read_study
from attnlab.studies.study_result import outcomes_of, verdict_of
from attnlab.studies.verdicts import outcomes_of_family
from attnlab.tasks.saved import measure_named


@dataclass(frozen=True)
class Kind:
    """A kind of studies, which share a page.

    rule: how their verdicts follow from what was measured.
    effect: what the first column of a table of expectations has.
    introduction: what stands before the rule; empty for nothing.
    shows_faults: whether each study is of the fault that has its name.
    """

    title: str
    rule: str
    effect: str
    introduction: str = ""
    shows_faults: bool = False


_PAIRING = (
    "Differences of one model's own measures are paired by seed, others are of independent seeds."
)
_TESTS = (
    "Below six seeds they are compared with Student's t (paired, or Welch's), from six on exactly, "
    "by all flips of signs or permutations of the seeds. Where the test sentences were resampled, "
    "their scatter counts too; the column *tested by* says so. Means alike within a bound: two "
    "one-sided tests, shown with the interval of 90 %; all other intervals are of 95 %. Nothing is "
    "decided where no seed scatters, or with fewer than three seeds. p values of primary "
    "expectations are corrected by Holm's method over all primary ones of a family; other "
    "expectations have their interval and their own p, and decide nothing. Outcomes are those "
    "after the correction."
)

# By the folder of the studies.
KINDS = {
    "claims": Kind(
        title="The lessons' claims, tested",
        rule="Each claim is judged by its primary expectations, which stand in "
        "`pipelines/studies/claims`. It *holds* where all of them do, *does not hold* where some "
        "do not and none does, *depends on* what they differ in where some do and some do not, and "
        f"is *undecided* else. {_PAIRING} {_TESTS}",
        effect="expectation",
    ),
    "replications": Kind(
        title="Published results, replicated",
        rule="Each card stands in `pipelines/studies/replications`, with the published figures, "
        "their tolerance and the published effects. *Reproduced*: the published setup was run, and "
        "the mean over the seeds is within the tolerance of every figure, or better. *Direction "
        "reproduced*: every primary effect holds. *Contradicted*: a primary effect does not hold, "
        "or, in the published setup and without effects, a figure is missed by our whole interval. "
        "*Not comparable*: another setup was run, and no effect is named. Else *undecided*. "
        f"{_PAIRING} {_TESTS}",
        effect="published effect",
    ),
    "museum": Kind(
        title="The museum of mistakes",
        rule="## How it was measured\n\nEach mistake has a study in `pipelines/studies/museum`: a "
        "model with it and one without, which start with the same weights and read the same "
        "batches; `replicate.py museum` runs all of them. Its primary expectation says what the "
        "mistake costs. It *holds* where the cost is certain, *does not hold* where the faulty "
        "model is certainly the better one, and is *undecided* else: a cost that five seeds do not "
        "show. All differences are paired by seed. "
        f"{_TESTS}",
        effect="what it costs",
        introduction=museum.INTRODUCTION,
        shows_faults=True,
    ),
}


@dataclass(frozen=True, eq=False)
class ShownStudy:
    """A study with its result.

    name: of its file.
    result: the content of its result.json; empty where it was not run.
    is_judged: whether its result answers the question as it stands now.
    """

    name: str
    study: Study
    result: Mapping[str, Any]
    is_judged: bool = True

    @property
    def was_run(self) -> bool:
        return self.is_judged and bool(self.result)

    @property
    def findings(self) -> list[Finding]:
        """Of its primary expectations."""
        return [finding_of_p(*p_values) for p_values in self.result.get("primary", [])]

    @property
    def cpu_minutes(self) -> str:
        return f"{self.result['cpu_minutes']:.0f}"


@dataclass(frozen=True)
class Verdict:
    """words: of the study. outcomes: of its primary expectations."""

    words: str
    outcomes: Sequence[Outcome]


def verdicts_of(studies: Sequence[ShownStudy]) -> dict[str, Verdict]:
    """{name of a study: its verdict}, corrected over its family; of those that were run."""
    families: dict[str, list[ShownStudy]] = {}
    for shown in studies:
        if shown.was_run:
            families.setdefault(shown.study.family or shown.name, []).append(shown)

    verdicts = {}
    for members in families.values():
        if members[0].study.looks:  # it is in no family
            (member,) = members
            of_looks = outcomes_of(member.study, member.result, member.findings)
            words = verdict_of(member.study, member.result, of_looks)
            verdicts[member.name] = Verdict(words, of_looks)
            continue
        findings = [finding for member in members for finding in member.findings]
        outcomes = iter(outcomes_of_family(findings))
        for member in members:
            of_member = [next(outcomes) for _ in member.findings]
            words = verdict_of(member.study, member.result, of_member)
            verdicts[member.name] = Verdict(words, of_member)
    return verdicts


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
        question = digest_of(file.read_text(encoding="utf-8"))
        is_judged = result.get("question") == question
        studies.append(ShownStudy(file.stem, read_study(file), result, is_judged))

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
    figures = (
        "Figures are means over the seeds, with their 95 % intervals and medians; where a study "
        "says when a seed has learnt, over those that did, whose share has its exact interval. The "
        "bands of curves reach from the least to the greatest seed. Metrics are those of the test "
        "split, along the steps of a training those of the validation split. `data.path` is the "
        "folder of the study's corpus, for SCAN and SIGMORPHON the one that holds theirs. Each "
        "study's `rows.csv` lies beside its figure; `replicate.py NAME --into docs --judge` judges "
        "it anew."
    )
    verdicts = verdicts_of(studies)
    summary = table(
        ["study", "verdict", "known before", "seeds", "CPU minutes"],
        [_summary_row(shown, verdicts) for shown in studies],
    )
    sections = []
    for shown in studies:
        if shown.was_run:
            sections.append(_section(kind, shown, verdicts[shown.name]))
        else:
            sections.append(_open_question(kind, shown))
    parts = [f"# {kind.title}", kind.introduction]
    if kind.shows_faults:
        parts.append(table(museum.HEADINGS, [_fault_row(shown, verdicts) for shown in studies]))
    parts += [kind.rule, figures, summary, *sections]
    return "\n\n".join(part for part in parts if part) + "\n"


def _fault_row(shown: ShownStudy, verdicts: Mapping[str, Verdict]) -> list[str]:
    """The row of a fault in the table of the museum."""
    cost = museum.NOT_MEASURED
    if shown.was_run:
        expected = _with_outcomes(
            shown.study, shown.result["expectations"], verdicts[shown.name].outcomes
        )
        cost = museum.cost(expected, shown.name)
    return museum.row(shown.name, cost)


def _summary_row(shown: ShownStudy, verdicts: Mapping[str, Verdict]) -> list[str]:
    """The row of a study in the table of all of them."""
    result = shown.result
    link = f"[{shown.study.title}](#{shown.name})"
    if not shown.was_run:
        reason = "asked anew, not run anew" if result else "not run"
        return [link, reason, "–", "–", "–"]
    known = "yes" if _known_before(shown) else "no"
    return [link, verdicts[shown.name].words, known, str(result["run_seeds"]), shown.cpu_minutes]


def _heading(shown: ShownStudy) -> str:
    """The title, with the name that links lead to."""
    return f'<a id="{shown.name}"></a>\n## {shown.study.title}'


def _open_question(kind: Kind, shown: ShownStudy) -> str:
    """What is asked, of a study that was not run, or was run with another question."""
    study = shown.study
    state = "Asked anew, and not run anew" if shown.result else "Not run"
    parts = [_heading(shown), f"**{state}.**", study.text.strip()]
    if study.known:
        parts.append(f"Known before: {study.known.strip()}")
    if study.source:
        parts.append(f"Published: {study.source.strip()}")
    if study.expect:
        rows = []
        for expected in study.expect:
            says = f"**{expected.says}**" if expected in study.primary else expected.says
            rows.append([says, measure_named(expected.measure).label])
        parts.append(table([kind.effect, "measure"], rows))
    return "\n\n".join(parts)


def _section(kind: Kind, shown: ShownStudy, verdict: Verdict) -> str:
    """What was asked and found, with the command, the tables and the figure."""
    study, result = shown.study, shown.result
    # What was found was written for the planned seeds.
    found = study.found if result["run_seeds"] == study.seeds else ""
    parts = [
        _heading(shown),
        f"**{verdict.words.capitalize()}.** {found}".strip(),
        study.text.strip(),
        _how_it_was_run(shown),
        _known_before(shown),
    ]
    if study.source:
        parts.append(f"Published: {study.source.strip()}")
    if study.source and study.differs:
        parts.append(f"What differs here: {study.differs.strip()}")
    if "tuned" in result:
        parts.append(_tuned(result["tuned"]))
    if study.threshold is not None:
        parts.append(f"A seed has learnt with {study.threshold.shown}.")

    if result["published_table"]:
        headings = ["system", "measure", "published", "ours", "tolerance", "reached"]
        parts.append(table(headings, result["published_table"]))
    if result["expectations"]:
        headings = [kind.effect, "measure", "difference", "asked", "tested by", "p", "outcome"]
        rows = _with_outcomes(study, result["expectations"], verdict.outcomes)
        parts.append(table(headings, rows))
    if result["table"]:
        parts.append(table(result["headings"], result["table"]))
    parts.append(f"![{study.title}](studies/{shown.name}/figure.png)")
    return "\n\n".join(part for part in parts if part)


def _tuned(found: Mapping[str, Any]) -> str:
    """What was chosen on validation, and of what."""
    seeds = ", ".join(map(str, found["seeds"]))
    words = (
        f"Each system has `{found['setting']}` at the value whose best validation is best: "
        f"{found['by']}, mean over the seeds {seeds}."
    )
    return f"{words}\n\n{table(found['headings'], found['table'])}"


def _with_outcomes(
    study: Study, rows: Sequence[Sequence[str]], outcomes: Sequence[Outcome]
) -> list[list[str]]:
    """The rows of the expectations: the primary ones in bold, with their outcomes."""
    of_primary = iter(outcomes)
    marked = []
    for expected, (says, *rest) in zip(study.expect, rows, strict=True):
        if expected in study.primary:
            marked.append([f"**{says}**", *rest, next(of_primary)])
        else:
            marked.append([says, *rest, "–"])
    return marked


def _known_before(shown: ShownStudy) -> str:
    """What was known before the run; empty where the question was committed before it."""
    registered = shown.result.get("registered")
    parts = []
    if shown.study.known:
        parts.append(f"Known before: {shown.study.known.strip()}")
    if registered is None:
        parts.append("The question, as it stands now, was written after these rows.")
    elif not registered["before"]:
        parts.append("No commit had the question, as it stands now, when the training began.")
    return " ".join(parts)


def _how_it_was_run(shown: ShownStudy) -> str:
    """The command, the seeds, the cost, the machine and the revision."""
    study, result = shown.study, shown.result
    seeds = result["run_seeds"]
    words = [pipeline_command("replicate"), shown.name]
    if seeds != study.seeds:
        words.append(f"--seeds {seeds}")
    command = " ".join([*words, *result["run_settings"]])
    last = study.first_seed + seeds - 1
    lines = [
        f"Seeds: {study.first_seed} to {last}. CPU minutes of training: {shown.cpu_minutes}. "
        f"{result['machine']}."
    ]
    if "revision" in result:
        lines.append(f"Revision {result['revision'][:12]}.")
    if "look" in result:
        lines.append(f"It was {result['look']['why']}.")
    registered = result.get("registered")
    if registered is not None and registered["before"]:
        lines.append(f"Registered by {registered['commit'][:12]}.")
    return f"```sh\n{command}\n```\n\n{' '.join(lines)}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
