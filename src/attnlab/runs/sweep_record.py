"""The records of a sweep on disk, the names of its points and their ranking.

The records are `sweep.json`, `jobs/<number>.json` for each job, and, where the points are known
from the start, `points.json`. Whoever wants to know the
progress or the results of a sweep reads these files and no tracker.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from filelock import Timeout

from attnlab.config.names import choice_words
from attnlab.errors import ExperimentError
from attnlab.files import read_own_record, write_json
from attnlab.locks import lock
from attnlab.project import pipeline_command
from attnlab.runs.description import main_metrics
from attnlab.runs.run_folder import DONE

LOCK = "lock"
LAST = "last"
JOBS = "jobs"  # the folder of their records
_RECORD = "sweep.json"
_POINTS = "points.json"
COMPARISON_FOLDER = "comparison"  # of all points, in the sweep's folder
OUTPUT = "output.log"  # what a job prints, in its output folder
# Of the table of points: MLflow limits a description, in which the commands stand behind it.
MOST_ROWS, _LONGEST_TABLE = 20, 3200
_PAGE_OF_A_RUN = 60  # characters that the address of a run's page is longer than `runs:/<id>`
# Settings of a sweep's command that say where its records and its runs are.
_PLACES = ("paths.runs=", "tracking=", "tracking.")


@dataclass(frozen=True)
class SweepRecord:
    """A sweep. Times are in seconds since 1970.

    identity: sixteen hexadecimal digits that a repeated sweep has again.
    name: for people, `attention × seed`.
    varies: the keys that differ from point to point, in the order of the command.
    overrides: the command's, without what is secret in them.
    options: the command's arguments that say where the configs are, such as `--config-dir`.
    points: how many there are in all.
    run_id: of the sweep's own run in the tracker; None where nothing is tracked.
    started: when it was last started.
    ended: when its last job had ended; None where it was stopped before that, or runs.
    main_metrics: of the test split, the columns of the ranking; empty shows all.
    is_search: whether a sweeper chose the points, and no grid.
    """

    identity: str
    name: str
    varies: list[str]
    overrides: list[str]
    points: int
    run_id: str | None
    started: float
    ended: float | None = None
    options: list[str] = field(default_factory=list)
    main_metrics: list[str] = field(default_factory=list)
    is_search: bool = False

    @property
    def command(self) -> tuple[str, ...]:
        """The words of a command that repeats the sweep."""
        return *pipeline_command("train").split(), "-m", *self.options, *self.overrides

    @property
    def compare_command(self) -> str:
        """The command that compares its points, for a shell."""
        # Where the records and the runs are is not to be found in the records.
        places = [unquoted(text) for text in self.overrides if text.startswith(_PLACES)]
        return f"{pipeline_command('compare')} {shlex.join([f'sweep={self.identity}', *places])}"


@dataclass(frozen=True)
class JobRecord:
    """A job of a sweep, which is one point of it. Times are in seconds since 1970.

    choices: what varies, by key, as text.
    status: `held` while a process that is none of this sweep, or an earlier job, trains the point;
        `stopped` by Ctrl-C or another signal.
    start_of_sweep: `SweepRecord.started` of the start that ran it last.
    output: the folder with its results, absolute; on disk relative to the runs folder, where it
        lies in it.
    identity: the experiment's; None until it is known.
    data: the folder of its prepared data, as `output`.
    new: whether it trained; False where the point was finished before.
    run_id: in the tracker.
    error: one sentence or more, of a job that failed or was stopped.
    """

    number: int
    name: str
    choices: dict[str, str]
    overrides: list[str]
    status: Literal["running", "held", "finished", "failed", "stopped"]
    start_of_sweep: float
    started: float
    output: str
    ended: float | None = None
    identity: str | None = None
    data: str | None = None
    new: bool = True
    run_id: str | None = None
    error: str | None = None

    @property
    def gave_up(self) -> bool:
        """Whether it ended without finishing its point: it failed, or was stopped."""
        return self.status in ("failed", "stopped")

    def ended_in(self, start: float) -> bool:
        """Whether it ended in the start of the sweep that began then.

        So did a job that an earlier start had begun, and that went on beside this one.
        """
        return self.ended is not None and (self.start_of_sweep == start or self.ended >= start)


class SweepFolder:
    """The folder `runs/sweeps/<identity>`: the records and the outputs of the jobs.

    The output of each job is under its number. The outputs lie elsewhere where the command sets
    hydra.sweep.dir or hydra.sweep.subdir.
    """

    def __init__(self, path: Path, numbers: Container[int] | None = None) -> None:
        self.path = path
        self._runs_folder = path.parents[1]
        self._numbers = numbers

    def part(self, numbers: Container[int]) -> SweepFolder:
        """The same folder, whose `jobs` are those with these numbers alone."""
        return SweepFolder(self.path, numbers)

    def read(self) -> SweepRecord:
        return read_own_record(self.path / _RECORD, SweepRecord, "remove it")

    def exists(self) -> bool:
        """Whether the record of the sweep is there."""
        return (self.path / _RECORD).is_file()

    def write(self, record: SweepRecord) -> None:
        write_json(self.path / _RECORD, asdict(record))

    def write_points(self, points: Sequence[Sequence[str]]) -> None:
        """Write the overrides of each point, for jobs that find their own taken."""
        write_json(self.path / _POINTS, {"points": [list(each) for each in points]})

    def has_points(self) -> bool:
        """Whether all points are known."""
        return (self.path / _POINTS).is_file()

    def points(self) -> list[list[str]] | None:
        """The overrides of each point; None where a sweeper chooses them one after the other."""
        path = self.path / _POINTS
        if not self.has_points():
            return None
        return read_own_record(path, dict[str, list[list[str]]], "remove it")["points"]

    def job(self, number: int) -> JobRecord | None:
        """The job of this number; None where it never started."""
        path = self._path_of_job(number)
        return self._read_job(path) if path.is_file() else None

    def count(self) -> int:
        """How many jobs have started, in any start of the sweep."""
        return sum(1 for _ in (self.path / JOBS).glob("[0-9]*.json"))

    def jobs(self, start_of_sweep: float | None = None) -> list[JobRecord]:
        """All jobs by their numbers, or those alone that this start of the sweep has run so far."""
        paths = (self.path / JOBS).glob("[0-9]*.json")
        found = (self._read_job(path) for path in paths)
        wanted = (job for job in found if start_of_sweep in (None, job.start_of_sweep))
        of_part = (job for job in wanted if self._numbers is None or job.number in self._numbers)
        return sorted(of_part, key=lambda job: job.number)

    def write_job(self, job: JobRecord) -> None:
        # A runs folder can be moved: the paths in it must not say where it was.
        output = self._movable(job.output)
        data = None if job.data is None else self._movable(job.data)
        write_json(
            self._path_of_job(job.number),
            asdict(replace(job, output=output, data=data)),
        )

    def record_lost(self, number: int, overrides: Sequence[str], reason: str) -> None:
        """Record the failure of a point whose job has ended without doing so itself."""
        sweep = self.read()
        job = self.job(number)
        if job is not None and job.start_of_sweep == sweep.started:
            if job.status == "running":
                self.write_job(replace(job, status="failed", ended=time.time(), error=reason))
            return

        # It never started.
        choices = choices_of(overrides, sweep.varies)
        now = time.time()
        self.write_job(
            JobRecord(
                number=number,
                name=name_of(choices),
                choices=choices,
                overrides=list(overrides),
                status="failed",
                start_of_sweep=sweep.started,
                started=now,
                output=str(self.path / str(number)),
                ended=now,
                error=reason,
            )
        )

    def is_point_free(self, job: JobRecord) -> bool:
        """Whether no process works on the point of a job."""
        point = self._runs_folder / "points" / str(job.identity)
        if not point.is_dir():
            return True
        try:
            with lock(point / LOCK).acquire(timeout=0):
                return True
        except Timeout:
            return False

    def remove_job(self, number: int) -> None:
        """Forget a job whose point another job has taken over."""
        self._path_of_job(number).unlink(missing_ok=True)

    def _path_of_job(self, number: int) -> Path:
        return self.path / JOBS / f"{number}.json"

    def _read_job(self, path: Path) -> JobRecord:
        job = read_own_record(path, JobRecord, "remove it")
        output = self._runs_folder / job.output  # an absolute path stays
        data = None if job.data is None else str(self._runs_folder / job.data)

        # Earlier versions wrote absolute paths; the runs folder may lie elsewhere now.
        usual = self.path / str(job.number)
        if Path(job.output).parts[-3:] == usual.parts[-3:]:
            output = usual
        return replace(job, output=str(output), data=data)

    def _movable(self, path: str) -> str:
        """The path relative to the runs folder, where it lies in it."""
        whole, runs_folder = Path(path).resolve(), self._runs_folder.resolve()
        return (
            whole.relative_to(runs_folder).as_posix() if whole.is_relative_to(runs_folder) else path
        )


def find_sweep(runs_folder: Path, wanted: str) -> SweepFolder:
    """The sweep with this identity, or the one that was started last.

    Raises ExperimentError where it is unclear which sweep is meant.
    """
    folders = [SweepFolder(path.parent) for path in (runs_folder / "sweeps").glob("*/sweep.json")]
    found = {folder.path.name: folder for folder in folders}
    if not found:
        raise ExperimentError(
            f"sweep: there is no sweep in {runs_folder / 'sweeps'}; "
            f"{pipeline_command('train')} -m ... starts one"
        )
    if wanted == LAST:
        return max(folders, key=lambda folder: (folder.read().started, folder.path.name))
    matching = sorted(identity for identity in found if identity.startswith(wanted))
    if len(matching) != 1:
        known = ", ".join(matching or sorted(found))
        raise ExperimentError(
            f"sweep must be {LAST} or the beginning of exactly one of {known}; got {wanted!r}"
        )
    return found[matching[0]]


def choices_of(overrides: Iterable[str], varies: Iterable[str]) -> dict[str, str]:
    """What the overrides of one point choose for the keys that vary, as text without quotes."""
    chosen = {}
    for text in overrides:
        key, _, value = unquoted(text).partition("=")
        chosen[key.lstrip("+~")] = value
    return {key: chosen[key] for key in varies if key in chosen}


def unquoted(override: str) -> str:
    """An override without the quotes that Hydra's grammar wants around its value.

    Commands without Hydra, as compare.py, take the value as it is.
    """
    key, equals, value = override.partition("=")
    quote = value[:1]
    if len(value) > 1 and quote in ("'", '"') and value[-1] == quote:
        value = value[1:-1].replace(f"\\{quote}", quote)
    return f"{key}{equals}{value}"


def name_of(choices: Mapping[str, str]) -> str:
    """`bahdanau · teacher forcing ratio 0.5 · seed 2`: what the names of its runs begin with."""
    return " · ".join(choice_words(key, value) for key, value in choices.items()) or "as given"


def short_key(key: str) -> str:
    """`attention` of `model/attention`, `lr` of `training.optimizer.lr`."""
    return key.replace("/", ".").rpartition(".")[2]


class RankedJob(NamedTuple):
    """A finished job with its metrics.

    quality: the best value of the metric `monitor`.
    test: metrics of the test split, of the model of step `step`.
    """

    job: JobRecord
    monitor: str
    quality: float
    step: int
    test: dict[str, float]


def ranking(jobs: Iterable[JobRecord], runs_folder: Path) -> list[RankedJob]:
    """The finished jobs with a validation value, the best first.

    Jobs with equal values keep their order.

    Raises ExperimentError for a damaged file.
    """
    found = []
    for job in jobs:
        if job.status != "finished":
            continue
        done = _read(runs_folder / "points" / str(job.identity) / DONE)
        quality = done.get("quality")
        if quality is None:
            continue

        metrics = _read(Path(job.output) / "metrics.json")
        test = {f"test/{name}": value for name, value in metrics.items() if value is not None}
        monitor = done.get("monitor", "validation/quality")
        ranked = RankedJob(job, monitor, quality, done["step"], test)
        order = -quality if done["higher_is_better"] else quality
        found.append((order, ranked))

    found.sort(key=lambda each: each[0])
    return [ranked for _, ranked in found]


def ranking_columns(ranked: Sequence[RankedJob], main: Sequence[str]) -> list[str]:
    """The main metrics of the test split that at least one point has, `test/bleu`."""
    present: dict[str, float] = {}
    for each in ranked:
        present |= each.test
    return [f"test/{name}" for name in main_metrics(present, "test", main)]


def as_markdown(ranked: Sequence[RankedJob], main: Sequence[str]) -> str:
    """The best job, and a table of all with links to their runs; empty for no jobs.

    main: names of the metrics that a person looks at first.
    """
    if not ranked:
        return ""
    best = ranked[0]
    columns = ranking_columns(ranked, main)
    headings = ["", "run", *map(heading, [best.monitor, *columns])]
    head = "\n".join([_row(headings), _row(["---"] * len(headings))])
    rows = []
    for place, each in enumerate(ranked, start=1):
        values = [each.quality, *(each.test.get(name) for name in columns)]
        rows.append(_row([str(place), _link(each.job), *map(shown_value, values)]))

    line = f"**Best by validation:** {_link(best.job)}, {best.monitor} {best.quality:.4g}"
    shown = _as_many_as_fit(rows)
    table = "\n".join([line, "", head, *shown])
    left_out = len(rows) - len(shown)
    if left_out:
        table += f"\n\n{left_out} more points are in the comparison."
    return table


def _row(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def _as_many_as_fit(rows: Sequence[str]) -> Sequence[str]:
    """The first rows of the table of points."""
    length = 0
    for count, row in enumerate(rows[:MOST_ROWS]):
        length += len(row) + _PAGE_OF_A_RUN
        if length > _LONGEST_TABLE and count > 0:
            return rows[:count]
    return rows[:MOST_ROWS]


def shown_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def heading(metric: str) -> str:
    """`validation bleu` of `validation/bleu` and of `validation/free_running/bleu`.

    These words wrap: a wide table widens the column of the page that it stands in.
    """
    split, slash, _ = metric.partition("/")
    name = metric.rpartition("/")[2]
    return f"{split} {name}" if slash else name


def _link(job: JobRecord) -> str:
    return job.name if job.run_id is None else f"[{job.name}](runs:/{job.run_id})"


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    return read_own_record(path, dict[str, Any], "train it again with rerun=true")
