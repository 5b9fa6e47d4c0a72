"""The Markdown of studies: a page for each kind, with a table of all studies of the kind.

Each study has a section there, or a page of its own: what was found, or what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.config.params import NO_REVISION
from attnlab.project import pipeline_command
from attnlab.studies import few_seeds_tables, museum
from attnlab.studies.claimed_in_lessons import LESSON_OF_CLAIM
from attnlab.studies.expectations import Finding, Outcome, finding_of_p, p_shown
from attnlab.studies.study import Study
from attnlab.studies.study_kinds import Kind
from attnlab.studies.study_result import FORETOLD_HEADINGS, outcomes_of, verdict_of
from attnlab.studies.verdicts import corrected_p_values, outcomes_of_family
from attnlab.tasks.saved import measure_named


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
    """Of a study, whose primary expectations have an outcome each.

    corrected: Holm's p of each; None of one that was not tested, or in no family.
    """

    words: str
    outcomes: Sequence[Outcome]
    corrected: Sequence[float | None]


def verdicts_of(studies: Sequence[ShownStudy]) -> dict[str, Verdict]:
    """{name of a study: its verdict}, corrected over its family; of those that were run."""
    families: dict[str, list[ShownStudy]] = {}
    for shown in studies:
        families.setdefault(shown.study.family or shown.name, []).append(shown)

    verdicts = {}
    for members in families.values():
        was_run = [member for member in members if member.was_run]
        findings = [finding for member in was_run for finding in member.findings]
        not_run = expectations_not_run(members)
        corrected = iter(corrected_p_values(findings, not_run))
        outcomes = iter(outcomes_of_family(findings, not_run))
        for member in was_run:
            if member.study.looks:  # it is in no family
                verdicts[member.name] = _verdict_at_a_look(member)
                continue
            of_member = [next(outcomes) for _ in member.findings]
            words = verdict_of(member.study, member.result, of_member)
            p_values = [next(corrected) for _ in member.findings]
            verdicts[member.name] = Verdict(words, of_member, p_values)
    return verdicts


def expectations_not_run(family: Sequence[ShownStudy]) -> int:
    """How many primary expectations of a family were not measured yet."""
    return sum(len(shown.study.primary) for shown in family if not shown.was_run)


def _verdict_at_a_look(shown: ShownStudy) -> Verdict:
    outcomes = outcomes_of(shown.study, shown.result, shown.findings)
    words = verdict_of(shown.study, shown.result, outcomes)
    return Verdict(words, outcomes, [None] * len(outcomes))


def study_page(kind: Kind, studies: Sequence[ShownStudy]) -> str:
    """The page as Markdown: what was found, and behind it how it was judged."""
    verdicts = verdicts_of(studies)
    sections = []
    if not kind.pages:
        sections = [_section(kind, shown, verdicts.get(shown.name)) for shown in studies]
    parts = [
        f"# {kind.title}",
        kind.introduction,
        *_faults(kind, studies, verdicts),
        _meaning_of_verdicts(kind, studies),
        _summary(kind, studies, verdicts),
        *sections,
        "## How it was judged",
        *kind.tests,
        _FIGURES,
        _families(studies),
    ]
    return _joined(parts) + "\n"


_FIGURES = (
    "**Figures** are means over the seeds, with their 95 % intervals and medians; where a study "
    "says when a seed has learnt, over those that did, whose share has its exact interval. The "
    "bands of curves reach from the least to the greatest seed. Metrics are those of the test "
    "split, along the steps of a training those of the validation split. `data.path` is the "
    "folder of the study's corpus, for SCAN and SIGMORPHON the one that holds theirs. Each "
    "study's `rows.csv` lies beside its figure; `replicate.py NAME --into docs --judge` judges "
    "it anew."
)
_ASKED_ANEW = "asked anew, not run anew"


def _meaning_of_verdicts(kind: Kind, studies: Sequence[ShownStudy]) -> str:
    """A line for each verdict that a study of this kind can have."""
    lines = [f"- *{verdict}*: {meaning}" for verdict, meaning in kind.verdicts.items()]
    if any(shown.result and not shown.is_judged for shown in studies):
        lines.append(
            f"- *{_ASKED_ANEW}*: the question was written anew after rows of an earlier one, and "
            "has no verdict until it is run."
        )
    judged = "How seeds, sentences and many questions are judged stands [below](#how-it-was-judged)"
    more = "; [statistics.md](statistics.md) tries how often such verdicts err."
    lines.append(f"\n{judged}{more}")
    return "\n".join(lines)


def _summary(kind: Kind, studies: Sequence[ShownStudy], verdicts: Mapping[str, Verdict]) -> str:
    """The table of all studies."""
    headings = ["study", "verdict", "known before", "seeds", "CPU minutes"]
    rows = [_summary_row(kind, shown, verdicts) for shown in studies]
    if kind.shows_lessons:
        headings.append("lesson")
        for row, shown in zip(rows, studies, strict=True):
            row.append(_link_to_lesson(shown.name))
    return table(headings, rows)


def _link_to_lesson(claim: str) -> str:
    """To the lesson of the course that makes a claim; a dash for none."""
    lesson = LESSON_OF_CLAIM.get(claim)
    if lesson is None:
        return "–"
    return f"[{lesson.number}](course/en/{lesson.page}.md)"


def _faults(
    kind: Kind, studies: Sequence[ShownStudy], verdicts: Mapping[str, Verdict]
) -> list[str]:
    """The table of what each fault costs, and what a fault reaches."""
    if not kind.shows_faults:
        return []
    rows = [_fault_row(shown, verdicts) for shown in studies]
    return [table(museum.HEADINGS, rows), museum.REACH, "## All studies"]


def _families(studies: Sequence[ShownStudy]) -> str:
    """How many primary expectations are corrected together."""
    sentences = []
    for family in sorted({shown.study.family for shown in studies if shown.study.family}):
        members = [shown for shown in studies if shown.study.family == family]
        primary = sum(len(shown.study.primary) for shown in members)
        not_run = expectations_not_run(members)
        waiting = f", {not_run} of them not run yet" if not_run else ""
        sentences.append(f"The family *{family}* has {primary} primary expectations{waiting}.")
    return " ".join(sentences)


def _fault_row(shown: ShownStudy, verdicts: Mapping[str, Verdict]) -> list[str]:
    """The row of a fault in the table of the museum."""
    cost = museum.NOT_MEASURED
    if shown.was_run:
        expected = _with_outcomes(shown.study, shown.result["expectations"], verdicts[shown.name])
        cost = museum.cost(expected, shown.name)
    return museum.row(shown.name, cost)


def _summary_row(kind: Kind, shown: ShownStudy, verdicts: Mapping[str, Verdict]) -> list[str]:
    """The row of a study in the table of all of them."""
    result = shown.result
    place = f"{kind.pages}/{shown.name}.md" if kind.pages else f"#{shown.name}"
    link = f"[{shown.study.title}]({place})"
    if not shown.was_run:
        reason = _ASKED_ANEW if result else "not run"
        return [link, reason, "–", "–", "–"]
    known = "yes" if known_before(shown) else "no"
    return [link, verdicts[shown.name].words, known, str(result["run_seeds"]), shown.cpu_minutes]


def _section(kind: Kind, shown: ShownStudy, verdict: Verdict | None) -> str:
    """What was asked and found; with the name that links lead to.

    verdict: None of a study that was not run.
    """
    study = shown.study
    heading = f'<a id="{shown.name}"></a>\n## {study.title}'
    taught = f"Taught in lesson {_link_to_lesson(shown.name)}." if kind.shows_lessons else ""
    if verdict is None:
        parts = [_state(shown), study.text.strip(), *_published(study), *_asked(kind, study)]
    else:
        parts = [_answer(shown, verdict), study.text.strip(), *_run(shown), *_published(study)]
        parts += _rules(study)
        parts += _found(kind, shown, verdict, figures="studies")
    return _joined([heading, *parts, taught])


def own_page(kind: Kind, shown: ShownStudy, verdict: Verdict | None) -> str:
    """The page of one study, as Markdown; arguments as for `_section`."""
    study = shown.study
    parts = [f"# {study.title}"]
    parts.append(_state(shown) if verdict is None else _answer(shown, verdict))
    parts += ["## Why it is asked", study.background.strip()]
    parts += ["## How it was measured", study.text.strip(), *_rules(study)]
    if verdict is None:
        parts += _asked(kind, study)
    else:
        parts += _run(shown)
        parts += ["## What was found", *_found(kind, shown, verdict, figures="../studies")]
    parts += ["## What it does not say", study.limits.strip()]
    parts.append(
        f"[{kind.title}](../{kind.pages}.md#how-it-was-judged) says how a verdict follows from the "
        "seeds, and where the rows lie."
    )
    return _joined(parts) + "\n"


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def _state(shown: ShownStudy) -> str:
    """Of a study that was not run, or was run with another question."""
    state = "Asked anew, and not run anew" if shown.result else "Not run"
    return f"**{state}.**"


def _answer(shown: ShownStudy, verdict: Verdict) -> str:
    # What was found was written for the planned seeds.
    is_planned = shown.result["run_seeds"] == shown.study.seeds
    found = shown.study.found if is_planned else ""
    return f"**{verdict.words.capitalize()}.** {found}".strip()


def _published(study: Study) -> list[str]:
    if not study.source:
        return []
    differs = f"What differs here: {study.differs.strip()}" if study.differs else ""
    return [f"Published: {study.source.strip()}", differs]


def _asked(kind: Kind, study: Study) -> list[str]:
    """What is expected of a study that was not run."""
    parts = [f"Known before: {study.known.strip()}"] if study.known else []
    if study.expect:
        rows = []
        for expected in study.expect:
            says = f"**{expected.says}**" if expected in study.primary else expected.says
            rows.append([says, measure_named(expected.measure).label])
        parts.append(table([kind.effect, "measure"], rows))
    return parts


def _run(shown: ShownStudy) -> list[str]:
    """The command and the conditions, and what was known before."""
    parts = [_how_it_was_run(shown), known_before(shown)]
    if "tuned" in shown.result:
        parts.append(_tuned(shown.result["tuned"]))
    return parts


def _rules(study: Study) -> list[str]:
    """When a seed has learnt, and when it is foretold to fail."""
    parts = []
    if study.threshold is not None:
        parts.append(f"A seed has learnt with {study.threshold.shown}.")
    if study.foretelling is not None:
        rule = study.foretelling
        parts.append(f"A seed is foretold to fail with {rule.place} {rule.bound}.")
    if study.comparisons is not None:
        parts.append(few_seeds_tables.RULE)
    return parts


def _found(kind: Kind, shown: ShownStudy, verdict: Verdict, figures: str) -> list[str]:
    """The tables and the figure. figures: the path of the folder of all studies' figures."""
    study, result = shown.study, shown.result
    parts = []
    if result["published_table"]:
        headings = ["system", "measure", "published", "ours", "tolerance", "reached"]
        parts.append(table(headings, result["published_table"]))
    if result["expectations"]:
        headings = [kind.effect, "measure", "difference", "asked", "tested by", "p", "outcome"]
        rows = _with_outcomes(study, result["expectations"], verdict)
        parts.append(table(headings, rows))
    if result["table"]:
        parts.append(table(result["headings"], result["table"]))
    if result.get("foretold_table"):
        parts.append(table(FORETOLD_HEADINGS, result["foretold_table"]))
    if study.comparisons is not None and result.get("few_seeds_table"):
        parts.append(
            table(few_seeds_tables.scatter_headings(study.comparisons), result["scatter_table"])
        )
        parts.append(
            table(few_seeds_tables.few_seeds_headings(study.comparisons), result["few_seeds_table"])
        )
    parts.append(f"![{study.title}]({figures}/{shown.name}/figure.png)")
    return parts


def _tuned(found: Mapping[str, Any]) -> str:
    """What was chosen on validation, and of what."""
    seeds = ", ".join(map(str, found["seeds"]))
    words = (
        f"Each system has `{found['setting']}` at the value whose best validation is best: "
        f"{found['by']}, mean over the seeds {seeds}."
    )
    return f"{words}\n\n{table(found['headings'], found['table'])}"


def _with_outcomes(
    study: Study, rows: Sequence[Sequence[str]], verdict: Verdict
) -> list[list[str]]:
    """The rows of the expectations: the primary ones in bold, with Holm's p and their outcomes."""
    of_primary = iter(zip(verdict.corrected, verdict.outcomes, strict=True))
    marked = []
    for expected, (says, *measured, p) in zip(study.expect, rows, strict=True):
        if expected not in study.primary:
            marked.append([says, *measured, p, "–"])
            continue
        corrected, outcome = next(of_primary)
        both = p if corrected is None else f"{p} (Holm: {p_shown(corrected)})"
        marked.append([f"**{says}**", *measured, both, outcome])
    return marked


def known_before(shown: ShownStudy) -> str:
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


def was_asked_before(shown: ShownStudy) -> bool:
    """Whether a commit had the question, as it stands now, when the training began."""
    registered = shown.result.get("registered")
    return registered is not None and registered["before"]


def _how_it_was_run(shown: ShownStudy) -> str:
    """The command, the seeds, the cost, the machine and the revision."""
    study, result = shown.study, shown.result
    last = study.first_seed + result["run_seeds"] - 1
    lines = [
        f"Seeds: {study.first_seed} to {last}. CPU minutes of training: {shown.cpu_minutes}. "
        f"{result['machine']}."
    ]
    if not result.get("revision", NO_REVISION).startswith(NO_REVISION):
        lines.append(f"Revision {result['revision'][:12]}.")
    if "look" in result:
        lines.append(f"It was {result['look']['why']}.")
    registered = result.get("registered")
    if registered is not None and was_asked_before(shown):
        lines.append(f"Registered by {registered['commit'][:12]}.")
    return f"```sh\n{command_of(shown)}\n```\n\n{' '.join(lines)}"


def command_of(shown: ShownStudy) -> str:
    """The command by which a study was run."""
    words = [pipeline_command("replicate"), shown.name]
    if shown.result["run_seeds"] != shown.study.seeds:
        words.append(f"--seeds {shown.result['run_seeds']}")
    return " ".join([*words, *shown.result["run_settings"]])


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
