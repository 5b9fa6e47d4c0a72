"""Tracking addresses: where they lead, and what a person opens to see the runs. Free of mlflow."""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from attnlab.errors import masked

SCHEMES = ("http://", "https://", "sqlite:///", "postgresql", "mysql", "mssql")
DATABASE_NAME = "mlflow.db"
ARTIFACTS_NAME = "mlflow-artifacts"


def checked_address(uri: str) -> str:
    """`uri`; raises ValueError for a scheme that MLflow's tracking does not have."""
    if uri.startswith(SCHEMES) and "://" in uri:
        return uri
    raise ValueError(
        "uri must be null (a database in the runs folder) or start with http://, https://, sqlite:///, "
        f"postgresql+psycopg2:// or mysql+pymysql://, got {masked(uri)!r}"
    )


def resolved_address(uri: str | None, runs_folder: Path) -> str:
    """The address with the path of an sqlite database made absolute."""
    path = sqlite_path(uri, runs_folder)
    return f"sqlite:///{path.as_posix()}" if path is not None else str(uri)


def sqlite_path(uri: str | None, runs_folder: Path) -> Path | None:
    """The database file of an sqlite address, None for another.

    A relative path counts from the folder that holds the runs folder.
    """
    runs_folder = Path(os.path.abspath(runs_folder))
    if uri is None:
        return runs_folder / DATABASE_NAME
    if not uri.startswith("sqlite:"):
        return None
    return Path(os.path.abspath(runs_folder.parent / uri.removeprefix("sqlite:///")))


def masked_overrides(overrides: Sequence[str]) -> list[str]:
    """The overrides of a command with passwords masked."""
    return [masked(text) for text in overrides]


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
