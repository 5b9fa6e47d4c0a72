"""Repair of the artifact locations in MLflow's sqlite database after a runs folder was moved.

MLflow stores locations with their absolute paths. `place.json` in the runs folder says where the
folder was when it was used last. If the folder is elsewhere now, moved or copied, the locations in
its former place are changed to the present one, once. This is the only module that writes MLflow's
tables. It does not import mlflow: a command that finds all in order loads nothing for it.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from filelock import Timeout

from attnlab.errors import ExperimentError, masked
from attnlab.files import atomic_file, read_own_record, write_json
from attnlab.locks import lock, locks_in

# In the runs folder.
DATABASE_NAME = "mlflow.db"
ARTIFACTS_NAME = "mlflow-artifacts"
PLACE_NAME = "place.json"
STORE_LOCK = ".mlflow.lock"

_SQLITE = "sqlite:///"
# The revisions of MLflow's schema (`alembic_version`) whose columns are listed below: MLflow 3.17.
KNOWN_REVISIONS = ("dc11669786a5",)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_PATIENCE = 60.0  # seconds for another process that holds the lock or the database
_LOCKS_OF_WORK = ("points/*/lock", "points/*/evaluations/*/lock", "sweeps/*/lock")


class ReadOnlyFolderError(ExperimentError):
    """The database cannot be put right, for the runs folder is read-only."""


@dataclass(frozen=True)
class Place:
    """What `place.json` holds.

    id: of the folder; a copy gets an id of its own.
    folder: the absolute path at which it was used last.
    moved_from, copied_from: its former places, and those of the folders that it is a copy of.
    """

    id: str
    folder: str
    moved_from: tuple[str, ...] = ()
    copied_from: tuple[str, ...] = ()

    @property
    def former(self) -> tuple[str, ...]:
        return (*self.moved_from, *self.copied_from)


@dataclass(frozen=True)
class _Column:
    """A column of MLflow's tables that holds locations, of the rows that meet a condition.

    is_json: the locations stand in JSON, as any of its texts.
    """

    table: str
    name: str
    condition: str = "1"
    is_json: bool = False


# What a run was given (params, the tags of its origin, the content of traces) is a record and stays
# as it is.
_COLUMNS = (
    _Column("experiments", "artifact_location"),
    _Column("runs", "artifact_uri"),
    _Column("logged_models", "artifact_location"),
    _Column("model_versions", "source"),
    _Column("model_versions", "storage_location"),
    _Column("trace_tags", "value", "key = 'mlflow.artifactLocation'"),
    _Column("datasets", "dataset_source", is_json=True),
    _Column("tags", "value", "key = 'mlflow.log-model.history'", is_json=True),
    _Column("workspaces", "default_artifact_root"),
    _Column("workspaces", "trace_archival_location"),
)


def sqlite_file(address: str) -> Path | None:
    """The absolute path of an sqlite database; None for the address of another tracker."""
    if not address.startswith(_SQLITE):
        return None
    return Path(os.path.abspath(address.removeprefix(_SQLITE)))


def portable_address(address: str, runs_folder: Path) -> str:
    """An address without its password.

    The path of a database inside the runs folder is made relative to that folder.
    """
    database = sqlite_file(address)
    if database is None or not database.is_relative_to(runs_folder):
        return masked(address)
    return f"{_SQLITE}{database.relative_to(runs_folder)}"


def runs_folder_of(database: Path) -> Path | None:
    """The runs folder that a database belongs to; None where there is none.

    For commands that know only the database.
    """
    if database.name == DATABASE_NAME or (database.parent / PLACE_NAME).is_file():
        return database.parent
    for folder in (database.parent / "runs", Path("runs").resolve()):
        if (folder / PLACE_NAME).is_file():
            return folder
    return None


def follow_moved_folder(runs_folder: Path, address: str, first: bool = False) -> None:
    """Put the database of a runs folder right if the folder was moved or copied; a line says so.

    To be called before a command reads or writes the database, and before it locks an experiment.

    first: whether to write `place.json` where nothing was tracked here yet.

    Raises ExperimentError where the database cannot be put right: it has an unknown schema, it
    cannot be written, or a process still works in the folder under its former name.
    """
    if address.startswith("http") or not runs_folder.is_dir():
        return  # a server stores the artifacts itself
    store = _Store(runs_folder, sqlite_file(address))
    if store.is_new() and not first:
        return
    if not store.needs_work():
        return
    with store.refusing(), store.locked():
        # Another process may have done it by now.
        line = store.put_right() if store.needs_work() else None
        if line is not None:
            print(line, file=sys.stderr)


def readable_copy(runs_folder: Path, address: str) -> TemporaryDirectory[str] | None:
    """As `follow_moved_folder`, for a command that only reads: a read-only folder is no hindrance.

    Returns a temporary folder with a copy of the database that was put right, where the folder was
    moved and is read-only; None where the database itself can be read.
    """
    try:
        follow_moved_folder(runs_folder, address)
    except ReadOnlyFolderError:
        temporary = TemporaryDirectory(prefix="attnlab-mlflow-")
        _Store(runs_folder, sqlite_file(address)).copy_put_right(
            Path(temporary.name) / DATABASE_NAME
        )
        return temporary
    return None


def former_place(runs_folder: Path, location: str) -> str | None:
    """The former place of the runs folder that contains a location.

    It may also be the place of a runs folder that this one is a copy of.
    """
    store = _Store(runs_folder, None)
    place = store.read()
    if place is None:
        return None
    return _Relocation(str(store.folder), place.former).origin(location)


class _Store:
    """A runs folder and the sqlite database that its runs are tracked in.

    database: None for a tracker of another kind.
    """

    def __init__(self, folder: Path, database: Path | None) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.database = None
        if database is not None and database.is_file():
            self.database = Path(os.path.realpath(database))
        self._is_inside = self.database is not None and _lies_in(
            str(self.database), str(self.folder)
        )

    def read(self) -> Place | None:
        """What `place.json` says; None where the folder has none."""
        path = self.folder / PLACE_NAME
        if not path.is_file():
            return None
        return read_own_record(
            path, Place, "remove it, and the former place is taken from MLflow's database"
        )

    def is_new(self) -> bool:
        """Whether nothing was tracked here yet."""
        return self.database is None and not (self.folder / PLACE_NAME).is_file()

    def needs_work(self) -> bool:
        """Whether the folder is not where it was, or its database still names a former place."""
        place = self.read()
        if place is None or place != self._settled(place):
            return True
        return self._is_out_of_date(place)

    def _is_out_of_date(self, place: Place) -> bool:
        """Whether the database still names a former place.

        The experiments are few, and all locations change in one transaction.
        """
        if not place.former:
            return False
        relocation = self._relocation(place)
        return any(
            relocation.origin(location) is not None for location in self._experiment_locations()
        )

    def put_right(self) -> str | None:
        """Move the locations, and record the present place.

        Returns the line for the user where something was moved.
        """
        before = self.read()
        place = self._settled(before)
        newly_moved = set(place.moved_from) - set(() if before is None else before.moved_from)
        if newly_moved:
            self._check_nobody_works(newly_moved.pop())

        # Before there was a `place.json`, a moved or copied folder had its new artifacts written to
        # the former place.
        may_be_there = place.former if before is None else place.moved_from
        line = self._move_locations(place, may_be_there)

        # Only now: if the process dies before this, the next one finds the rest to do.
        if place != before:
            try:
                write_json(self.folder / PLACE_NAME, asdict(place))
            except OSError:
                if place.former:
                    raise  # a folder that was never moved may be read-only
        return line

    def _settled(self, before: Place | None) -> Place:
        """What `place.json` should say."""
        here = str(self.folder)
        if before is None:
            return self._first_place()
        if _is_same_folder(before.folder, here):
            # Reached by another name, such as a link or a mount: the old locations are still valid.
            return before

        former = before.folder
        moved_from = [each for each in before.moved_from if each not in (here, former)]
        copied_from = [each for each in before.copied_from if each not in (here, former)]
        if _id_at(former) == before.id:
            return Place(_new_id(), here, tuple(moved_from), (*copied_from, former))
        return Place(before.id, here, (*moved_from, former), tuple(copied_from))

    def _first_place(self) -> Place:
        """What `place.json` should say in a folder that has none yet.

        The former place is taken from the database.
        """
        moved_from, copied_from = [], []
        for former in self._places_of_experiments():
            if (Path(former) / DATABASE_NAME).is_file():
                copied_from.append(former)
            else:
                moved_from.append(former)
        return Place(_new_id(), str(self.folder), tuple(moved_from), tuple(copied_from))

    def _places_of_experiments(self) -> list[str]:
        """The former places of this folder, according to the locations of the experiments.

        They are read from the database.
        """
        found: list[str] = []
        for location in self._experiment_locations():
            path = PurePosixPath(_path_of(location) or "")
            # MLflow made its experiment `Default` with the database, in a folder of its own.
            is_default = path.name == "0"
            artifacts = path.parent if is_default else path
            former = str(artifacts.parent)
            if (
                artifacts.name != ARTIFACTS_NAME
                or former in found
                or _is_same_folder(former, str(self.folder))
            ):
                continue
            # Otherwise another runs folder may be tracked in the same database.
            if (is_default and self._is_inside) or self._has_artifacts_of(former):
                found.append(former)
        return found

    def _has_artifacts_of(self, former: str) -> bool:
        """Whether a run whose artifacts were stored in another runs folder has them in this one."""
        relocation = _Relocation(str(self.folder), (former,))
        moved = (
            relocation.moved(location) for location in self._values("SELECT artifact_uri FROM runs")
        )
        return any(
            location is not None and Path(_path_of(location) or "").exists() for location in moved
        )

    def _relocation(self, place: Place) -> _Relocation:
        """From the former places to the present one."""
        if self.database is None:
            return _Relocation(str(self.folder), ())
        former = [
            each for each in place.former if self._is_inside or not self._is_shared_with(each)
        ]
        return _Relocation(str(self.folder), tuple(former))

    def _is_shared_with(self, former: str) -> bool:
        """Whether a database outside of the folder belongs to another runs folder too.

        That folder now is at a former place of this one.
        """
        assert self.database is not None
        is_in_use = (Path(former) / PLACE_NAME).is_file() or (Path(former) / "points").is_dir()
        if not is_in_use:
            return False
        # As where a whole project was copied, and its database with it.
        theirs = os.path.normpath(os.path.join(former, os.path.relpath(self.database, self.folder)))
        return not os.path.isfile(theirs) or os.path.samefile(theirs, self.database)

    def _check_nobody_works(self, former: str) -> None:
        """Raise ExperimentError where a process still uses the folder under its former name.

        Such a process may run in another container.
        """
        locks = [path for pattern in _LOCKS_OF_WORK for path in locks_in(self.folder, pattern)]
        for path in locks:
            try:
                with lock(path).acquire(timeout=0):
                    pass
            except Timeout:
                raise ExperimentError(
                    f"paths.runs: {self.folder} was {former} before, and a process still works on "
                    f"{path.parent.relative_to(self.folder)} in it; wait until it has ended, or "
                    "use the folder under the name that it has there"
                ) from None

    def _move_locations(self, place: Place, may_be_there: Sequence[str]) -> str | None:
        """Write the new locations in one transaction, after a backup.

        Returns the line for the user.

        may_be_there: former places; an artifact that exists only there stays where it is.
        """
        if self.database is None or not self._is_out_of_date(place):
            return None
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
        backup = self.database.with_name(f"{self.database.stem}.before_{now}{self.database.suffix}")
        with closing(
            sqlite3.connect(self.database, timeout=_PATIENCE, isolation_level=None)
        ) as connection:
            self._check_revision(connection, place)
            connection.execute("BEGIN IMMEDIATE")  # from here on nobody else writes
            try:
                with atomic_file(backup) as temporary:
                    self._copy_database(temporary)
                changes = _change(connection, self._relocation(place), may_be_there)
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise

        how = "copied" if changes.origins <= set(place.copied_from) else "moved"
        parts = [
            f"runs folder: {self.folder} was {how} from {', '.join(sorted(changes.origins))}",
            f"{changes.moved} locations in {self.database.name} were put right",
        ]
        if changes.left_behind:
            parts.append(f"{changes.left_behind} still point there, for their files are only there")
        return "; ".join([*parts, f"the database as it was: {backup}"])

    def _check_revision(self, connection: sqlite3.Connection, place: Place) -> None:
        found = [
            str(revision)
            for (revision,) in connection.execute("SELECT version_num FROM alembic_version")
        ]
        if len(found) == 1 and found[0] in KNOWN_REVISIONS:
            return
        raise ExperimentError(
            f"tracking.uri: the locations in {self.database} still point to "
            f"{', '.join(place.former)}, and cannot be put right: its schema has the revision "
            f"{', '.join(found) or 'none'}, this attnlab knows {', '.join(KNOWN_REVISIONS)}; run "
            f"`mlflow db upgrade sqlite:///{self.database}` if the database is older, install a "
            "newer attnlab if it is newer, or move the folder back"
        )

    def copy_put_right(self, copy: Path) -> None:
        """Write a copy of the database with correct locations.

        Nothing changes in the folder.

        Raises ExperimentError where the database has an unknown schema.
        """
        place = self._settled(self.read())
        self._copy_database(copy)
        with closing(sqlite3.connect(copy)) as connection, connection:
            self._check_revision(connection, place)
            _change(connection, self._relocation(place), place.former)

    def _copy_database(self, copy: Path) -> None:
        """By sqlite itself, which knows what else belongs to the file."""
        assert self.database is not None
        with closing(_reading(self.database)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)

    def _experiment_locations(self) -> list[str]:
        return self._values("SELECT artifact_location FROM experiments")

    def _values(self, query: str) -> list[str]:
        """The texts that a query finds.

        Empty for a file that is no database of MLflow, which MLflow itself reports.
        """
        if self.database is None:
            return []
        try:
            with closing(_reading(self.database)) as connection:
                return [value for (value,) in connection.execute(query) if value is not None]
        except sqlite3.Error:
            return []

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the database, and that of the folder."""
        folders = [self.folder] if self.database is None else [self.database.parent, self.folder]
        with ExitStack() as held:
            for folder in dict.fromkeys(folders):
                held.enter_context(lock(folder / STORE_LOCK, timeout=_PATIENCE))
            yield

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn what prevents the work into an ExperimentError."""
        try:
            yield
        except (OSError, sqlite3.Error, Timeout) as error:
            place = self._settled(self.read())
            if not place.former:
                return  # a folder that was never moved may be read-only
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            is_read_only = isinstance(error, OSError) and error.errno in _READ_ONLY
            kind = ReadOnlyFolderError if is_read_only else ExperimentError
            raise kind(
                f"paths.runs: {self.folder} was {' and '.join(place.former)} before, and the "
                f"artifact locations in its MLflow database cannot be put right: {reason}; make "
                "the folder writable, or copy it to a place that is"
            ) from error


@dataclass(frozen=True)
class _Relocation:
    """From former places to the present one, `here`; all of them absolute paths."""

    here: str
    former: tuple[str, ...]

    def origin(self, location: str) -> str | None:
        """The former place that a location lies in.

        None where the location is right, or has nothing to do with the folder.
        """
        path = _path_of(location)
        if path is None:
            return None
        # One may lie in another, as where `runs` became `runs/old`: the innermost one counts.
        for place in sorted((self.here, *self.former), key=len, reverse=True):
            if _lies_in(path, place):
                return None if place == self.here else place
        return None

    def moved(self, location: str) -> str | None:
        """The location in the present place; None where it stays as it is."""
        origin = self.origin(location)
        if origin is None:
            return None
        path = f"{self.here}{(_path_of(location) or '')[len(origin) :]}"
        return Path(path).as_uri() if location.startswith("file:") else path


@dataclass
class _Changes:
    """What was put right in a database.

    moved: how many locations now point to the present place.
    origins: the former places that they pointed to.
    left_behind: how many locations stay as they are, for their files are only in the former place.
    """

    moved: int
    origins: set[str]
    left_behind: int = 0


def _change(
    connection: sqlite3.Connection, relocation: _Relocation, may_be_there: Sequence[str]
) -> _Changes:
    """Move the locations in all columns, in the transaction that the caller opened."""
    changes = _Changes(0, set())
    for column in _COLUMNS:
        rows = connection.execute(
            f"SELECT rowid, {column.name} FROM {column.table} WHERE {column.condition}"
        )
        for row, value in rows.fetchall():
            moved = (
                _moved_json(value, relocation) if column.is_json else relocation.moved(value or "")
            )
            if moved is None:
                continue
            origin = relocation.origin(value)
            if (
                origin in may_be_there
                and column.table != "experiments"
                and _is_only_there(value, moved)
            ):
                changes.left_behind += 1
                continue
            if origin is not None:
                changes.origins.add(origin)
            changes.moved += 1
            connection.execute(
                f"UPDATE {column.table} SET {column.name} = ? WHERE rowid = ?", (moved, row)
            )
    return changes


def _is_only_there(former: str, moved: str) -> bool:
    """Whether files are at a former location and not at the present one."""
    there, here = _path_of(former), _path_of(moved)
    return (
        there is not None
        and here is not None
        and os.path.exists(there)
        and not os.path.exists(here)
    )


def _moved_json(text: str, relocation: _Relocation) -> str | None:
    """JSON with the locations in it moved; None where it stays as it is."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError):
        return None
    moved = _moved_texts(content, relocation)
    return None if moved == content else json.dumps(moved)


def _moved_texts(node: Any, relocation: _Relocation) -> Any:
    if isinstance(node, dict):
        return {key: _moved_texts(value, relocation) for key, value in node.items()}
    if isinstance(node, list):
        return [_moved_texts(value, relocation) for value in node]
    if isinstance(node, str):
        return relocation.moved(node) or node
    return node


def _path_of(location: str) -> str | None:
    """The absolute path of a location, `file:///a%20b` or `/a b`.

    None for another kind of address.
    """
    if location.startswith("file:"):
        return url2pathname(urlsplit(location).path)
    return location if location.startswith("/") else None


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _is_same_folder(one: str, other: str) -> bool:
    """Whether two paths name one folder, by links or mounts as well."""
    try:
        return one == other or os.path.samefile(one, other)
    except OSError:
        return False


def _id_at(folder: str) -> str | None:
    """The id of a runs folder; None where there is none, or none that can be read."""
    try:
        return read_own_record(Path(folder) / PLACE_NAME, Place, "").id
    except ExperimentError:
        return None


def _new_id() -> str:
    return uuid.uuid4().hex


def _reading(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)
