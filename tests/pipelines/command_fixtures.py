"""The real entry points, run inside the test's process.

They run warm, in an empty folder, and their output is captured.
"""

from __future__ import annotations

import logging
import os
import runpy
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from entry_points import PIPELINES, TINY, Command, Ended

from blank_pictures import leave_pictures_blank

MadeOnce = Callable[[str, Path, Callable[[], Ended]], Ended]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, away from the project and from the environment of the tests."""
    of_tracker = ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME")
    for name in (
        "DVC_ROOT",
        "ATTNLAB_ABSENT",
        "HYDRA_FULL_ERROR",
        "LOCAL_RANK",
        "NODE_RANK",
        *of_tracker,
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def database(folder: Path, empty_database: Path) -> Path:
    """MLflow's database in the current folder, without runs."""
    (folder / "runs").mkdir()
    return shutil.copy(empty_database, folder / "runs" / "mlflow.db")


@pytest.fixture
def command(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Command:
    """A function that runs a command in the empty folder, as `__main__`.

    `command("train.py", "seed=2")` is `python pipelines/train.py seed=2`. Its pictures stay blank,
    except in tests with the marker `pictures`.
    """
    if request.node.get_closest_marker("pictures") is None:
        leave_pictures_blank(monkeypatch)

    def run(script: str, *arguments: str) -> Ended:
        capfd.readouterr()
        path = str(PIPELINES / script)
        monkeypatch.setattr("sys.argv", [path, *arguments])
        environment = dict(os.environ)
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        hydra_level = logging.getLogger("hydra").level  # a sweep raises it in its process
        root.handlers.clear()  # Hydra sets up its own, on the streams of this run
        # Made once, with the stream of an earlier test
        for handler in logging.getLogger("optuna").handlers:
            if not isinstance(handler, logging.StreamHandler):
                continue
            if handler.stream is None or handler.stream.closed:
                handler.stream = sys.stderr
        code: object = 0
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as error:
            code = error.code or 0
        except BaseException:  # what would be a stack trace at the shell
            traceback.print_exc()
            code = 1
        finally:
            os.environ.clear()
            os.environ.update(environment)
            root.handlers[:] = handlers
            root.setLevel(level)
            logging.getLogger("hydra").setLevel(hydra_level)
        printed = capfd.readouterr()
        return Ended(code if isinstance(code, int) else 1, printed.out, printed.err)

    return run


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """`made_once("name", folder, make)`: what `make` leaves in runs/, made once for a module.

    The first test that asks for it makes it in its folder, and each other one gets a copy, in which
    MLflow's database names the first folder.
    """
    made: dict[str, tuple[Ended, Path]] = {}

    def fill(name: str, folder: Path, make: Callable[[], Ended]) -> Ended:
        if name in made:
            ended, kept = made[name]
            shutil.copytree(kept, folder / "runs", dirs_exist_ok=True)
            return ended
        ended = make()
        kept = tmp_path_factory.mktemp(name) / "runs"
        shutil.copytree(folder / "runs", kept)
        made[name] = ended, kept
        return ended

    return fill


@pytest.fixture
def tiny() -> tuple[str, ...]:
    return (*TINY, "tracking=none")
