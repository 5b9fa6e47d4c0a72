"""The wheel in an empty folder: what a user has who installed attnlab with pip.

Here it is built and installed beside the libraries of this environment. `make dist` runs the same
tests on an environment of its own: ATTNLAB_INSTALLED is the `bin` folder of that one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
from entry_points import ANY_ATTENTION, PIPELINES, ROOT, TINY

pytestmark = pytest.mark.slow

INSTALLED = "ATTNLAB_INSTALLED"
QUIET = ("tracking.system_metrics=false", "tracking.heat_map_sentences=0")


@dataclass(frozen=True)
class Wheel:
    """An installed wheel: its console script, and the Python and the environment that belong to
    it.
    """

    script: Path
    python: Path
    environment: dict[str, str]

    def run(
        self, folder: Path, *words: str | Path, code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Run `attnlab <words>` in a folder; it must end with this exit code."""
        return finished([self.script, *words], folder, self.environment, code)


def finished(
    command: list[str | Path], folder: Path, environment: dict[str, str], code: int = 0
) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    return ended


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """That of a user's terminal, without what the tests of this process set."""
    of_tests = {"PYTHONPATH", "HYDRA_FULL_ERROR", "ATTNLAB_COMMAND", INSTALLED}
    return {name: value for name, value in os.environ.items() if name not in of_tests}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Wheel:
    if INSTALLED in os.environ:
        scripts = Path(os.environ[INSTALLED])
        return Wheel(scripts / "attnlab", scripts / "python", environment)

    built, site = (tmp_path_factory.mktemp(name) for name in ("built", "site"))
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", built]
    finished(build, ROOT, environment)
    (file,) = built.glob("attnlab-*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    finished([*install, "--target", site, file], built, environment)
    # Python finds these folders before those of the environment, and so before the clone.
    return Wheel(
        site / "bin" / "attnlab", Path(sys.executable), {**environment, "PYTHONPATH": str(site)}
    )


@pytest.fixture(scope="module")
def trained(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `attnlab train` ran."""
    folder = tmp_path_factory.mktemp("user")
    wheel.run(folder, "train", *TINY, *QUIET)
    return folder


def the_point(folder: Path) -> Path:
    (point,) = (folder / "runs" / "points").iterdir()
    return point


def test_wheel_is_imported_in_place_of_the_clone(wheel: Wheel, tmp_path: Path) -> None:
    where = "import attnlab, attnlab.project as p; print(attnlab.__file__, p.CONF, p.PIPELINES)"
    paths = finished([wheel.python, "-c", where], tmp_path, wheel.environment).stdout.split()
    package = Path(paths[0]).parent
    assert not package.is_relative_to(ROOT)
    assert [Path(path) for path in paths[1:]] == [package / "conf", package / "pipelines"]


def test_wheel_lists_its_pipelines_and_its_studies(wheel: Wheel, tmp_path: Path) -> None:
    assert "\n    train " in wheel.run(tmp_path, "--help").stdout
    shown = wheel.run(tmp_path, "train", "--help").stdout
    assert "\n    attnlab train model/attention=general " in shown
    assert "\nmodel/attention: bahdanau, " in shown
    said = wheel.run(tmp_path, "replicate", "nothing", code=1).stderr
    assert "the study must be one of 01_bottleneck, " in said
    assert [*tmp_path.iterdir()] == []


def test_wheel_trains_and_reports_into_the_current_folder(trained: Path) -> None:
    assert [path.name for path in trained.iterdir()] == ["runs"]
    (page,) = trained.glob("runs/plain/*/*/report/index.html")
    assert "bleu" in page.read_text(encoding="utf-8").lower()
    record = json.loads((the_point(trained) / "run" / "run.json").read_text(encoding="utf-8"))
    assert record["record"]["command"] == ["attnlab", "train", *TINY, *QUIET]


def test_wheel_translates_with_what_it_trained(wheel: Wheel, trained: Path) -> None:
    ended = wheel.run(trained, "translate", the_point(trained) / "model", "a b c", "d")
    assert ended.stderr == ""
    assert ended.stdout.count("\n") == 2


def test_wheel_serves_the_explorer(wheel: Wheel, trained: Path) -> None:
    command = [wheel.script, "explore", the_point(trained) / "model", "--no-browser"]
    with subprocess.Popen(
        command, cwd=trained, env=wheel.environment, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        with urlopen(address[0]) as page, urlopen(f"{address[0]}app.js") as script:
            assert page.read().startswith(b"<!doctype html>")
            assert script.status == 200
        server.send_signal(signal.SIGINT)


def test_model_of_the_wheel_has_the_identity_of_the_clone(
    wheel: Wheel, trained: Path, environment: dict[str, str]
) -> None:
    version = "from importlib.metadata import version; print(version('torch'))"
    of_torch = {
        finished([python, "-c", version], trained, environment).stdout
        for python in (wheel.python, Path(sys.executable))
    }
    if len(of_torch) > 1:
        pytest.skip("another build of torch gives other bits, and so another identity")

    of_clone = [sys.executable, PIPELINES / "train.py", *TINY, *QUIET]
    ended = finished(of_clone, trained, environment)
    assert f"experiment {the_point(trained).name} is finished already" in ended.stderr


@pytest.mark.long
def test_wheel_sweeps_over_an_own_choice_and_compares(wheel: Wheel, tmp_path: Path) -> None:
    own = tmp_path / "my_conf" / "model" / "attention" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("_target_: attnlab.model.attention.dot.DotScore\n", encoding="utf-8")
    said = wheel.run(tmp_path, "compare", "sweep=last", code=1).stderr
    assert "attnlab train -m ... starts one" in said

    sweep = ("train", "-m", "--config-dir", "my_conf", "model/attention=mine,general")
    said = wheel.run(tmp_path, *sweep, *ANY_ATTENTION, "tracking=none").stderr
    assert "2 of 2 points finished" in said
    hint = re.search("compare them: (.*)", said)
    assert hint is not None
    words = shlex.split(hint[1])
    assert words[:2] == ["attnlab", "compare"]

    assert "│ mine " in wheel.run(tmp_path, *words[1:]).stdout
    (page,) = tmp_path.glob("runs/sweeps/*/comparison/index.html")
    command = "attnlab train -m --config-dir my_conf model/attention=mine,general "
    assert command in page.read_text(encoding="utf-8")


@pytest.mark.long
def test_wheel_trains_in_two_processes_that_ddp_starts(wheel: Wheel, tmp_path: Path) -> None:
    two = ("hardware.devices=2", "hardware.strategy=ddp", "tracking=none", "chain=false")
    wheel.run(tmp_path, "train", *TINY, *two)
    assert (the_point(tmp_path) / "model" / "model.json").is_file()
