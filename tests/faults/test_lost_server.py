"""A tracking server that goes away in the middle of a training, for good or for a while.

Nothing is missing in the end. The server is lost twice, once for good and once for a while;
ATTNLAB_FAULTS sets another number:

    ATTNLAB_FAULTS=20 python -m pytest tests/faults/test_lost_server.py -s
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from mlflow import MlflowClient
from servers import free_port, wait_for_port

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
LOSSES = int(os.environ.get("ATTNLAB_FAULTS", "2"))
VALIDATIONS = 10
VOLATILE = ("time/", "speed/", "system/")
TRAINING = (
    "data=copy", "data.num_pairs=300", "data.max_length=6", "model.encoder.embedding_size=8",
    "model.encoder.hidden_size=8", "model.decoder.hidden_size=16", "model.readout.size=16",
    "search.size=2", "search.max_length=8", f"training.max_steps={10 * VALIDATIONS}",
    "training.validate_every=10", "training.batching.size=16",
    "training.validation_search.max_length=8", "tracking.system_metrics=false",
    "tracking.heat_map_sentences=1",
)  # fmt: skip


class Server:
    """MLflow over a database, at the same address again whenever it is started."""

    def __init__(self, folder: Path, database: Path) -> None:
        self._folder, self._port = folder, free_port()
        shutil.copy(database, folder / "server.db")
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--backend-store-uri",
            f"sqlite:///{self._folder}/server.db",
            "--artifacts-destination",
            str(self._folder / "artifacts"),
            "--host",
            "127.0.0.1",
            "--port",
            str(self._port),
            "--workers",
            "1",
        ]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )
        wait_for_port(self._port, self._process, self._folder / "server.log", 240)

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def server_in(empty_database: Path) -> Iterator[Callable[[Path], Server]]:
    """Makes servers, of which none is left in the end."""
    made = []

    def make(folder: Path) -> Server:
        made.append(Server(folder, empty_database))
        return made[-1]

    yield make
    for server in made:
        server.kill()


def stored(address: str) -> dict[str, object]:
    """What the server knows: the one run's state, the curves that repeat, its files."""
    client = MlflowClient(tracking_uri=address)
    (run,) = client.search_runs([client.get_experiment_by_name("attnlab").experiment_id])
    names = sorted(name for name in run.data.metrics if not name.startswith(VOLATILE))
    curves = {
        name: [
            (point.step, point.value) for point in client.get_metric_history(run.info.run_id, name)
        ]
        for name in names
    }
    return {
        "status": run.info.status,
        "curves": {name: sorted(curve) for name, curve in curves.items()},
        "files": sorted(_files(client, run.info.run_id, "")),
        "model": run.data.tags["model_hash"],
    }


def _files(client: MlflowClient, run_id: str, folder: str) -> list[str]:
    found = []
    for info in client.list_artifacts(run_id, folder or None):
        if info.is_dir:
            found += _files(client, run_id, info.path)
        else:
            # Behind it, the name of an image differs from run to run.
            found.append(info.path.partition("+timestamp+")[0])
    return found


def start_training(python: Path, folder: Path, address: str) -> subprocess.Popen[str]:
    command = [python, PIPELINES / "train.py", *TRAINING, f"tracking.uri={address}"]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "WARM_PYTHON_BLANK_PICTURES": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass
class Training:
    """A training that is watched: what it says, and when each of its validations was over."""

    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)
    validated: list[float] = field(default_factory=list)

    def read_on(self, until: int | None = None) -> None:
        """Read what it says, to its end or until so many validations are over."""
        assert self.process.stderr is not None
        while until is None or len(self.validated) < until:
            line = self.process.stderr.readline()
            if not line:
                break
            self.said.append(line)
            if line.startswith("step"):
                self.validated.append(time.monotonic())

    def paces(self, first: int = 1) -> list[float]:
        """Seconds from each validation to the next, from the first of these on."""
        return [later - earlier for earlier, later in pairwise(self.validated[first - 1 :])]

    def finished(self) -> str:
        """What it said; all of it is over, and nothing was left out."""
        self.read_on()
        said = "".join(self.said)
        assert self.process.wait() == 0, said
        assert len(self.validated) == VALIDATIONS, said
        return said


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_training_that_loses_its_server_is_uploaded_whole(
    tmp_path: Path, server_in: Callable[[Path], Server], warm_python: Path
) -> None:
    start = tmp_path / "start"
    start.mkdir()
    prepare = [warm_python, PIPELINES / "prepare.py", *TRAINING]
    assert subprocess.run(prepare, cwd=start, check=False, capture_output=True).returncode == 0

    def folder(name: str) -> Path:
        place = tmp_path / name
        shutil.copytree(start, place)
        return place

    whole = folder("whole")
    server = server_in(whole)
    server.start()
    undisturbed = Training(start_training(warm_python, whole, server.address))
    undisturbed.finished()
    expected = stored(server.address)
    server.kill()
    usual = statistics.median(undisturbed.paces())

    draw, paces = random.Random(1), []
    for number in range(LOSSES):
        place = folder(str(number))
        server = server_in(place)
        server.start()
        comes_back = number % 2 == 1
        training = Training(start_training(warm_python, place, server.address))
        # Somewhere from the first validation on, to the end of the last.
        validation = draw.randrange(1, VALIDATIONS)
        training.read_on(validation)
        time.sleep(draw.uniform(0, usual))
        server.kill()
        if comes_back:
            time.sleep(draw.uniform(0, 2))
            server.start()
        said = training.finished()
        if not comes_back:
            assert "everything is on disk" in said
            paces += training.paces(validation)
            server.start()
        deliver = [warm_python, PIPELINES / "deliver.py", f"tracking.uri={server.address}"]
        delivered = subprocess.run(deliver, cwd=place, check=False, capture_output=True, text=True)
        assert delivered.returncode == 0, delivered.stderr
        found = stored(server.address)
        assert [name for name in expected if found[name] != expected[name]] == [], (
            f"lost at validation {validation}"
        )
        server.kill()
        shutil.rmtree(place)
    print(f"\n{LOSSES} losses of the server, nothing missing; from one validation to the next")
    lost = statistics.median(paces)
    print(
        f"{usual:.2f} s with it, {lost:.2f} s once it was lost for good (medians); "
        f"at most {max(paces):.2f} s"
    )
    # One call to a server that is gone, with its retries, takes MLflow 4 seconds; one that waits
    # for an answer 30.
    assert lost < 1.5 * usual + 2
    assert max(paces) < 2 * max(undisturbed.paces()) + 10


@pytest.mark.slow
def test_training_without_its_server_is_refused_within_twenty_seconds(
    tmp_path: Path, warm_python: Path
) -> None:
    began = time.monotonic()
    training = start_training(warm_python, tmp_path, f"http://127.0.0.1:{free_port()}")
    _, err = training.communicate(timeout=200)
    assert training.returncode == 1
    assert "start the server, correct tracking.uri, or choose tracking=none" in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("runs/points/*/checkpoints"))
    print(
        f"{time.monotonic() - began:.1f} s, "
        "the start of Python and the data's preparation among them"
    )
