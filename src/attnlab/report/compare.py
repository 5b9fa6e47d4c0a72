"""Comparison of runs: which systems differ, by how much, and at what price."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attnlab.config.paths import COMPARISON, check_replaceable
from attnlab.errors import ExperimentError
from attnlab.experiment.command_settings import CompareSettings
from attnlab.experiment.point import experiment_lock
from attnlab.files import resolve_path
from attnlab.progress import progress_bars
from attnlab.project import pipeline_command
from attnlab.report.answers import answers, rule, short_verdicts
from attnlab.report.compared_runs import ComparedRuns
from attnlab.report.comparison import PAGE, MlflowLinks, write_comparison
from attnlab.report.comparison_tables import letters_sentence, notes, percent, ranking
from attnlab.report.disagreement import Output, disagreement
from attnlab.report.factors import factors_of
from attnlab.report.findings import Findings, Wanted, findings_of
from attnlab.report.run_sources import runs_of_builds, runs_of_sweep, runs_of_tracker
from attnlab.runs.run import Run
from attnlab.runs.run_pages import run_pages
from attnlab.runs.stored_runs import StoredRuns
from attnlab.runs.sweep_record import COMPARISON_FOLDER, SweepFolder, find_sweep
from attnlab.runs.sweep_verdicts import set_verdicts
from attnlab.runs.tracking import MlflowTracking


def compare(
    compared: ComparedRuns, settings: CompareSettings, sweep: SweepFolder | None
) -> tuple[Path, Findings]:
    """Write the comparison to a folder, whole or not at all; returns it, and what was found."""
    into = _folder_of(compared, settings, sweep)
    check_replaceable("into", into, COMPARISON)  # before anything is measured
    of_runs = [(run.name, run.measured) for run in compared.runs]
    measure = compared.measures.chosen(settings.metric, of_runs)
    wanted = Wanted(
        measure, settings.baseline, settings.samples, settings.confidence, settings.seed
    )
    with progress_bars() as progress:
        findings = findings_of(compared.runs, wanted, progress)
    write_comparison(
        compared, findings, into, settings.sentences, _mlflow_links(compared, settings)
    )
    return into, findings


def _mlflow_links(compared: ComparedRuns, settings: CompareSettings) -> MlflowLinks:
    run_ids = [run.run_id for run in compared.runs if run.run_id is not None]
    pages = run_pages(settings.tracking, settings.runs_folder, run_ids)
    server = settings.tracking.server_command(settings.runs_folder) if pages else None
    return MlflowLinks(pages, server)


def find_wanted_sweep(settings: CompareSettings) -> SweepFolder | None:
    """The sweep that the settings name; None where they name other runs."""
    if settings.sweep is None:
        return None
    return find_sweep(settings.runs_folder, settings.sweep)


def read_runs(settings: CompareSettings, sweep: SweepFolder | None) -> ComparedRuns:
    """From the sweep's records, from folders, or from MLflow."""
    if sweep is not None:
        return runs_of_sweep(sweep, settings.runs_folder, settings.allow)
    if settings.builds is not None:
        folders = [Path(folder).expanduser() for folder in settings.builds]
        return runs_of_builds(folders, settings.allow)
    if not isinstance(settings.tracking, MlflowTracking):
        raise ExperimentError("tracking must be mlflow where runs or filter is given")
    reader = StoredRuns(settings.tracking.connection(settings.runs_folder))
    with tempfile.TemporaryDirectory(prefix="attnlab-compare-") as folder:
        if settings.runs is not None:
            stored = reader.by_ids(settings.runs, Path(folder))
            asked = ("runs", ", ".join(settings.runs))
        else:
            assert settings.filter is not None
            stored = reader.by_filter(settings.filter, Path(folder))
            asked = ("filter", settings.filter)
        return runs_of_tracker(stored, asked, named=settings.runs is not None, allow=settings.allow)


def _folder_of(
    compared: ComparedRuns, settings: CompareSettings, sweep: SweepFolder | None
) -> Path:
    if settings.into is not None:
        return resolve_path(settings.into)
    above = settings.runs_folder if sweep is None else sweep.path
    return above / place_of(compared, sweep)


def place_of(compared: ComparedRuns, sweep: SweepFolder | None) -> str:
    """The place of a comparison beside others: a sweep has one, and any choice of runs another."""
    if sweep is not None:
        return COMPARISON_FOLDER
    ids = "\n".join(sorted(run.run_id or run.name for run in compared.runs))
    return f"comparisons/{hashlib.sha256(ids.encode()).hexdigest()[:16]}"


def log_comparison(
    compared: ComparedRuns,
    findings: Findings,
    settings: CompareSettings,
    sweep: SweepFolder | None,
    folder: Path,
) -> str:
    """Add the folder to the sweep's run in MLflow; returns a sentence that says whether it was.

    The description of that run then has the answer, and the run of each point a verdict as a tag.
    The sweep's run itself is not reopened: it says how the sweep ended, and when.
    """
    reason = _reason_not_to_log(compared, settings, sweep)
    if reason is not None:
        return f"not logged: {reason}"
    assert isinstance(settings.tracking, MlflowTracking)
    assert compared.parent is not None
    try:
        reader = StoredRuns(settings.tracking.connection(settings.runs_folder))
    except ExperimentError as error:  # the comparison itself is there
        return _keep_for_later(findings, settings, sweep, folder, error)
    try:
        reader.add_folder(compared.parent, folder, place_of(compared, sweep))
    except ExperimentError as error:
        return f"not logged: {error}"
    if sweep is not None:
        runs_folder, answer = settings.runs_folder, answer_in_markdown(findings)
        with experiment_lock(sweep.path):
            settings.tracking.describe_comparison(runs_folder, sweep.path, answer)
            settings.tracking.set_verdicts(runs_folder, sweep.path, verdicts_of_runs(findings))
    return f"logged to the sweep's run {compared.parent}"


def _reason_not_to_log(
    compared: ComparedRuns, settings: CompareSettings, sweep: SweepFolder | None
) -> str | None:
    if settings.into is not None:
        return "into names a folder of its own"
    if not isinstance(settings.tracking, MlflowTracking) or compared.parent is None:
        return "no sweep's run that all of these are children of"
    if sweep is not None and sweep.read().ended is None:
        return "the sweep has not ended"
    return None


def _keep_for_later(
    findings: Findings,
    settings: CompareSettings,
    sweep: SweepFolder | None,
    folder: Path,
    error: ExperimentError,
) -> str:
    """Keep the comparison in the sweep's own folder, where MLflow is unreachable."""
    run = None if sweep is None else Run.read(sweep.path)
    if sweep is None or run is None:
        return f"not logged: {error}"
    with experiment_lock(sweep.path):
        run.log_artifact(folder)
        run.change(comparison=answer_in_markdown(findings))
        set_verdicts(sweep, settings.runs_folder, verdicts_of_runs(findings), uploader=None)
    return f"not logged yet: {error}; {pipeline_command('deliver')} uploads it"


def verdicts_of_runs(findings: Findings) -> dict[str, str]:
    """{name of a run: the verdict on its system}."""
    by_system = short_verdicts(findings)
    shown: dict[str, str] = {}
    for system in findings.systems:
        shown |= {run.name: by_system[system.name] for run in system.runs}
    return shown


def answer_in_markdown(findings: Findings) -> str:
    """The answers of the page and the most disputed sentence, for the sweep's run."""
    first, *others = [
        f"**Certain:** {answer.text}" if answer.kind == "certain" else answer.text
        for answer in answers(findings, factors_of(findings))
    ]
    rule_and_rest = "The rule and all else: `comparison/index.html` among the artifacts."
    # MLflow shows the first five lines of a description, and unfolds the others.
    in_front = [f"**Which is better?** {first}", _most_disputed(findings)]
    return "\n\n".join(filter(None, [*in_front, *others, rule_and_rest]))


def _most_disputed(findings: Findings) -> str:
    """What the best and the worst system make of the sentence on which they differ most.

    Empty where all systems make the same of every sentence.
    """
    disputed = disagreement(findings, count=1).sentences
    if not disputed:
        return ""
    sentence = disputed[0]
    by_quality = sorted(sentence.outputs, key=_mean_quality)
    worst, best = by_quality[0], by_quality[-1]
    return (
        f"**They differ most on** {_as_code(sentence.source)} (expected "
        f"{_as_code(sentence.expected)}): {best.system} writes {_as_code(best.text)}, "
        f"{worst.system} {_as_code(worst.text)}."
    )


def _mean_quality(output: Output) -> float:
    return output.quality if output.mean_quality is None else output.mean_quality


def _as_code(text: str) -> str:
    """Inline code of Markdown, which a backtick would end."""
    return f"`{text.replace('`', chr(39))}`"


def show_comparison(compared: ComparedRuns, findings: Findings, folder: Path, logged: str) -> None:
    """Print the answers, the ranking, what was left out, and where the page is."""
    factors = factors_of(findings)
    for answer in answers(findings, factors):
        print(answer.text)
    print(rule(findings, factors))
    if findings.single and compared.more_seeds is not None:
        print(f"add seeds: {compared.more_seeds}")
    print()
    Console().print(_table(findings))
    if len(findings.systems) > 1:
        print(" ".join(filter(None, [letters_sentence(findings), *notes(findings)])))
    for point in compared.left_out:
        print(f"left out: {point.name}: {point.reason}", file=sys.stderr)
    print(f"MLflow: {logged}", file=sys.stderr)
    print(f"page: {folder / PAGE}")


def _table(findings: Findings) -> Table:
    """The ranking; without groups where nothing could be tested."""
    level = percent(findings.wanted.confidence)
    groups = ["group"] if findings.has_letters else []
    table = Table("system", findings.measure.heading, level, *groups, "seeds")
    for row in ranking(findings):
        letters = [row.letters] if findings.has_letters else []
        table.add_row(row.system, row.value, row.interval, *letters, str(row.seeds))
    return table
