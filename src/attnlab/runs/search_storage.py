"""Where the trials of `sweep=optuna` are kept, and whose of them are still at work.

In a database several leaders share a study. Each says every few seconds that its trials are at
work; a trial of which nobody has said so for a while is failed, and its point is queued again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock
from optuna.exceptions import StorageInternalError
from optuna.storages import (
    BaseStorage,
    InMemoryStorage,
    RDBStorage,
    RetryHeartbeatStaleTrialCallback,
    fail_stale_trials,
)
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy import URL, create_engine, inspect, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from attnlab.errors import ExperimentError, masked, show
from attnlab.runs.search_parts import without_notices
from attnlab.runs.sweep_settings import Direction

HEARTBEAT_INTERVAL = 10  # seconds
GRACE_PERIOD = 60  # seconds without a heartbeat, after which a leader is taken for dead
_PATIENCE = 60  # seconds to wait for an sqlite database that another leader writes to
_CONNECT_PATIENCE = 10  # seconds for a server to answer
# A trial that several leaders asked for at once, beyond the wanted number.
SURPLUS = "surplus"
_FACTS = "attnlab"
# What the identity of a sweep follows from is more than a reader would guess.
_NAMES = {"sweep": "sweep (its ranges, settings and code)"}


def open_storage(address: str | None) -> BaseStorage:
    """The storage at an address such as `sqlite:///search.db`; in memory without one.

    Raises ExperimentError for an address that is none, or a database that does not answer.
    """
    if address is None:
        return InMemoryStorage()
    shown = show(masked(address))
    try:
        url = make_url(address)
    except ArgumentError:
        raise ExperimentError(
            "sweep.storage must be the address of a database, sqlite:///<file>.db or "
            f"postgresql+psycopg2://user@host/name, or null for none; got {shown}"
        ) from None

    backend = url.get_backend_name()
    if backend == "sqlite" and not url.database:
        raise ExperimentError(
            "sweep.storage must name a file, sqlite:///<file>.db, or be null, which keeps the "
            f"trials in memory; got {shown}"
        )
    if backend == "sqlite" and not Path(str(url.database)).absolute().parent.is_dir():
        raise ExperimentError(
            f"sweep.storage: {shown} cannot be used: its folder does not exist, make it first"
        )
    limits = {
        "sqlite": {"timeout": _PATIENCE},
        "postgresql": {"connect_timeout": _CONNECT_PATIENCE},
    }
    connecting = limits.get(backend, {})
    # Of two leaders that create one file at a time the second one finds half of the tables.
    one_at_a_time = FileLock(f"{url.database}.lock") if backend == "sqlite" else nullcontext()
    try:
        with one_at_a_time, without_notices():
            _check_tables(url, connecting, shown)
            return RDBStorage(
                address,
                engine_kwargs={"connect_args": connecting},
                heartbeat_interval=HEARTBEAT_INTERVAL,
                grace_period=GRACE_PERIOD,
                heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(),
            )
    except (SQLAlchemyError, ImportError, OSError, RuntimeError, ValueError) as error:
        # Optuna explains a missing driver in several lines, of which the cause names the package.
        raise ExperimentError(f"sweep.storage: {shown} cannot be used: {_reason(error)}") from error


def _check_tables(url: URL, connecting: dict[str, Any], shown: str) -> None:
    """Raise ExperimentError for a database of MLflow's: both keep their version in one table."""
    engine = create_engine(url, connect_args=connecting)
    try:
        tables = inspect(engine).get_table_names()
    finally:
        engine.dispose()
    if "alembic_version" in tables and "studies" not in tables:
        raise ExperimentError(
            f"sweep.storage: {shown} holds the tables of another program, such as MLflow; name a "
            "database that is the search's own"
        )


def _reason(error: BaseException) -> str:
    """An error of a database in one line, without secrets."""
    cause = error.__cause__ or error
    if isinstance(cause, ModuleNotFoundError):
        return f"it needs the Python package {cause.name}"
    cause = getattr(cause, "orig", None) or cause
    return masked(" ".join(str(cause).split()) or type(cause).__name__)


@contextmanager
def storage_errors(address: str | None) -> Iterator[None]:
    """Raise ExperimentError in place of what a database raises while a search uses it."""
    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        raise ExperimentError(
            f"sweep.storage: {show(masked(str(address)))} failed: {_reason(error)}; the same "
            "command goes on"
        ) from error


class Trials:
    """The trials of a study, as one of its leaders sees and takes them.

    study: in a storage of `open_storage`.
    wanted: how many there shall be, of all leaders together.
    """

    def __init__(self, study: Study, storage: BaseStorage, wanted: int) -> None:
        self.study, self.wanted = study, wanted
        self._storage = storage

    @property
    def is_shared(self) -> bool:
        return isinstance(self._storage, RDBStorage)

    def ask(self, distributions: Mapping[str, Any]) -> Trial | None:
        """A new trial, or one that a dead leader left; None where there are as many as wanted."""
        self._fail_stale()
        if len(self.counted()) >= self.wanted:
            return None
        with without_notices():
            trial = self.study.ask(dict(distributions))
        if self.is_shared:
            earlier = [each for each in self.counted() if each.number < trial.number]
            self._record_heartbeat(trial.number)
            if len(earlier) >= self.wanted:
                trial.set_user_attr(SURPLUS, True)
                self.study.tell(trial, state=TrialState.FAIL)
                return None
        return trial

    def give_back(self, trial: Trial) -> None:
        """Queue the point of a trial again that this leader does not finish."""
        if not self.is_shared:
            return
        failed = self.study.tell(trial, state=TrialState.FAIL)
        with without_notices():
            RetryHeartbeatStaleTrialCallback()(self.study, failed)

    def wait_for_a_dead_leaders(self, distributions: Mapping[str, Any]) -> Trial | None:
        """A trial that another leader has at work now, once that leader is taken for dead.

        None where all of them are still at work after the time that this takes.
        """
        until = time.monotonic() + GRACE_PERIOD + HEARTBEAT_INTERVAL
        while self._are_others_at_work() and time.monotonic() < until:
            time.sleep(min(1.0, HEARTBEAT_INTERVAL / 2))
            trial = self.ask(distributions)
            if trial is not None:
                return trial
        return None

    def _are_others_at_work(self) -> bool:
        return bool(self._all((TrialState.RUNNING,)))

    @contextmanager
    def at_work(self, open_trials: Mapping[int, object]) -> Iterator[None]:
        """Say every few seconds, while the block runs, that these trials are at work.

        open_trials: by number; may change meanwhile.
        """
        if not self.is_shared:
            yield
            return
        is_over = threading.Event()

        def beat() -> None:
            while not is_over.wait(HEARTBEAT_INTERVAL):
                for number in list(open_trials):
                    # The search itself reports a database that stays away.
                    with suppress(SQLAlchemyError, StorageInternalError):
                        self._record_heartbeat(number)

        thread = threading.Thread(target=beat, name="heartbeat of trials", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _record_heartbeat(self, number: int) -> None:
        if not isinstance(self._storage, RDBStorage):
            return
        study_id = self._storage.get_study_id_from_name(self.study.study_name)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        self._storage.record_heartbeat(trial_id)

    def _fail_stale(self) -> None:
        if self.is_shared:
            with without_notices():
                fail_stale_trials(self.study)

    def _all(self, states: Sequence[TrialState] | None = None) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=states)

    def counted(self) -> list[FrozenTrial]:
        """The trials but for those that wait, that were queued again, or were one too many."""
        with without_notices():
            again = {
                number
                for trial in self._all()
                for number in RetryHeartbeatStaleTrialCallback.retry_history(trial)
            }
        counted = []
        for trial in self._all():
            is_surplus = SURPLUS in trial.user_attrs
            if trial.state != TrialState.WAITING and trial.number not in again and not is_surplus:
                counted.append(trial)
        return counted


def open_study(
    storage: BaseStorage,
    name: str,
    sampler: optuna.samplers.BaseSampler,
    pruner: optuna.pruners.BasePruner,
    directions: Sequence[Direction],
    facts: Mapping[str, Any],
) -> Study:
    """The study with this name, a new one where there is none.

    facts: what its trials must have in common, by the settings' names.

    Raises ExperimentError where there is a study of another kind.
    """
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        sampler=sampler,
        pruner=pruner,
        directions=list(directions),
        load_if_exists=True,
    )
    wanted = {"directions": list(directions), **facts}
    found = study.user_attrs.get(_FACTS)
    if found is None and not study.get_trials(deepcopy=False):
        study.set_user_attr(_FACTS, wanted)
        return study
    differing = [fact for fact in wanted if (found or {}).get(fact) != wanted[fact]]
    if differing:
        fact = differing[0]
        raise ExperimentError(
            f"sweep.study: the study {name} in sweep.storage has other trials than this sweep: "
            f"their {_NAMES.get(fact, fact)} is {show((found or {}).get(fact))}, and here "
            f"{show(wanted[fact])}; choose another sweep.study"
        )
    return study
