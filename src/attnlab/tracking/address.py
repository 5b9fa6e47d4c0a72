"""Tracking addresses: which are allowed, where they lead, how they look without secrets. Free of mlflow."""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from attnlab.config.secrets import HIDDEN, masked, told_override
from attnlab.errors import ExperimentError, has_control_character

__all__ = [
    "checked_address",
    "masked",
    "resolved_address",
    "scrubbed",
    "sqlite_path",
    "told_overrides",
    "where_to_look",
]

DATABASE_SERVERS = ("postgresql", "postgresql+psycopg2", "mysql", "mysql+pymysql")
DATABASE_NAME = "mlflow.db"
# Under another name, such as that of a program's start-up file, its texts could be lines of something else.
SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
ARTIFACTS_NAME = "mlflow-artifacts"


def checked_address(uri: str) -> str:
    """`uri`, or a ValueError in words fit for the user."""
    scheme = uri.partition(":")[0]
    if has_control_character(uri):
        raise ValueError(f"uri must be on one line, without control characters, got {masked(uri)!r}")
    if scheme in ("http", "https"):
        try:
            has_host = bool(urlsplit(uri).hostname and (urlsplit(uri).port or True))
        except ValueError:
            has_host = False
        if has_host:
            return uri
    elif scheme == "sqlite":
        if uri.startswith("sqlite:///") and "?" not in uri and Path(uri).suffix in SQLITE_SUFFIXES:
            return uri
        raise ValueError(f"uri must be sqlite:///<file>.db, .sqlite or .sqlite3, got {masked(uri)!r}")
    elif scheme in DATABASE_SERVERS and "://" in uri:
        from attnlab.tracking.database_options import option_problem  # costs an import of sqlalchemy

        problem = option_problem(uri)
        if problem is not None:
            # Behind the `?` a secret may stand under a name that is not known as one's.
            raise ValueError(f"uri {problem}, got {masked(uri).partition('?')[0]!r}")
        return uri
    raise ValueError(
        "uri must be null (a database in the runs folder) or start with http://, https://, sqlite:///, "
        f"postgresql+psycopg2:// or mysql+pymysql://, got {masked(uri)!r}"
    )


def resolved_address(uri: str | None, runs_folder: Path) -> str:
    """The address with the path of an sqlite database made absolute.

    Raises ExperimentError for one that is a link to something else, which it would take the place of.
    """
    path = sqlite_path(uri, runs_folder)
    if path is not None and path.resolve().suffix not in SQLITE_SUFFIXES:
        raise ExperimentError(
            f"tracking.uri: {path} leads to {path.resolve()}, which is no .db, .sqlite or .sqlite3; name the database"
        )
    return f"sqlite:///{path.as_posix()}" if path is not None else str(uri)


def sqlite_path(uri: str | None, runs_folder: Path) -> Path | None:
    """The database file of an sqlite address, None for another."""
    runs_folder = Path(os.path.abspath(runs_folder))
    if uri is None:
        return runs_folder / DATABASE_NAME
    if not uri.startswith("sqlite:"):
        return None
    return Path(os.path.abspath(runs_folder.parent / uri.removeprefix("sqlite:///")))


def scrubbed(text: str, uri: str) -> str:
    """Somebody else's message without the credentials of `uri`, in any spelling."""
    try:
        password = urlsplit(uri).password
    except ValueError:
        password = None
    text = masked(text)
    for spelling in {password, unquote(password), quote(unquote(password), safe="")} if password else ():
        text = text.replace(spelling, HIDDEN)
    return text


def told_overrides(overrides: Sequence[str]) -> list[str]:
    """The overrides of a command without what is secret in them."""
    return [told_override(text) for text in overrides]


def where_to_look(uri: str | None, experiment: str, runs_folder: Path, port: int = 5000) -> str:
    """What opens the runs: a command bound to this machine (for a database), and a page."""
    if uri is not None and uri.startswith(("http://", "https://")):
        return f"open {masked(uri)}"
    path = sqlite_path(uri, runs_folder)
    store = masked(str(uri)) if path is None else f"sqlite:///{_short(path)}"
    program = Path(sys.executable).with_name("mlflow")
    words = [_short(program) if program.exists() else "mlflow", "server"]
    words += ["--backend-store-uri", store, "--host", "127.0.0.1", "--port", str(port)]
    command = "MLFLOW_DISABLE_TELEMETRY=true " + shlex.join(words)
    return f"{command}\nopen http://127.0.0.1:{port}/{_page(path, experiment)}"


def _page(database: Path | None, experiment: str) -> str:
    """The page of the experiment's runs; by itself MLflow leads to those for language model prompts."""
    if database is None or not database.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            query = "SELECT experiment_id FROM experiments WHERE name = ?"
            found = connection.execute(query, [experiment]).fetchone()
    except sqlite3.Error:
        return ""
    return f"#/experiments/{found[0]}/runs?workflowType=machine_learning" if found else ""


def _short(path: Path) -> str:
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()
