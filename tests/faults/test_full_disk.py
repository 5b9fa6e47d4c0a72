"""A full disk, and a read-only or removed folder.

The command ends with one sentence, and no finished file is lost.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from attnlab.training.checkpoints import checkpoint_step

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
TINY = (
    "data=copy", "data.num_pairs=300", "data.max_length=6", "model.encoder.embedding_size=64",
    "model.encoder.hidden_size=64", "model.decoder.hidden_size=64", "model.readout.size=64",
    "search.size=2", "search.max_length=8", "training.max_steps=60", "training.validate_every=10",
    "training.batching.size=16", "training.validation_search.max_length=8", "chain=false",
    "paths.data=data",
)  # fmt: skip
NOBODY = "65534"  # a user
UNTRACKED = ("tracking=none",)
TRACKED = ("tracking=mlflow", "tracking.system_metrics=false", "tracking.heat_map_sentences=0")


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(warm_python: Path) -> Run:
    def run(
        folder: Path,
        script: str,
        *arguments: str,
        tracking: tuple[str, ...] = UNTRACKED,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """A stage in a folder."""
        command = [warm_python, PIPELINES / script, *TINY, *tracking, *arguments]
        environment = {**os.environ, **environment}
        return subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env=environment,
        )

    return run


def one_sentence(code: int, err: str, *words: str) -> None:
    assert code == 1, err
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, err
    assert "Traceback" not in err
    for word in words:
        assert word in errors[0]


def left_half(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*") if path.name not in (".hydra", ".mlflow.lock")]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """A folder with prepared data."""
    folder = tmp_path_factory.mktemp("start")
    assert run(folder, "prepare.py").returncode == 0
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here (it takes root)")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("tracking", [UNTRACKED, TRACKED], ids=["untracked", "tracked"])
def test_training_on_a_disk_that_fills_up_stops_and_resumes(
    tracking: tuple[str, ...],
    start: Path,
    small_disk: Path,
    tmp_path: Path,
    run: Run,
    empty_database: Path,
) -> None:
    if tracking == TRACKED:  # its database lies elsewhere: the disk is for checkpoints
        shutil.copy(empty_database, tmp_path / "mlflow.db")
        tracking = (*TRACKED, f"tracking.uri=sqlite:///{tmp_path}/mlflow.db")
    whole, folder = tmp_path / "whole", small_disk / "work"
    for each in (whole, folder):
        shutil.copytree(start, each)
    assert run(whole, "train.py", "paths.model=model").returncode == 0
    # Room for the first checkpoints, but not for all that training keeps.
    (checkpoint,) = (
        path.stat().st_size for path in (whole / "runs" / "points").glob("*/checkpoints/last.ckpt")
    )
    free = shutil.disk_usage(small_disk).free
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(free - int(2.5 * checkpoint)))

    filled = run(folder, "train.py", "paths.model=model", tracking=tracking)
    one_sentence(filled.returncode, filled.stderr, "could not be written: No space left")
    assert not (folder / "model").exists()
    (point,) = (folder / "runs" / "points").iterdir()
    step = checkpoint_step(point / "checkpoints" / "last.ckpt")
    assert 0 < step < 60
    assert left_half(folder) == []

    ballast.unlink()
    again = run(folder, "train.py", "paths.model=model", tracking=tracking)
    assert again.returncode == 0, again.stderr
    assert f"goes on from its checkpoint at step {step}" in again.stderr
    for path in sorted((whole / "model").rglob("*")):
        assert path.read_bytes() == (folder / "model" / path.name).read_bytes(), path.name


@pytest.mark.slow
@pytest.mark.parametrize(("script", "limit"), [("prepare.py", "2000"), ("train.py", "60000")])
def test_stage_beyond_a_file_quota_leaves_outputs_alone(
    script: str, limit: str, start: Path, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "work"
    shutil.copytree(start, folder)
    before = {path: path.read_bytes() for path in (folder / "data").rglob("*") if path.is_file()}
    more = ("data.num_pairs=400",) if script == "prepare.py" else ()
    ended = run(folder, script, *more, WARM_PYTHON_FILE_LIMIT=limit)
    one_sentence(ended.returncode, ended.stderr, "File too large")
    assert {
        path: path.read_bytes() for path in (folder / "data").rglob("*") if path.is_file()
    } == before
    assert left_half(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("script", ["prepare.py", "train.py"])
def test_stage_in_a_read_only_folder_says_permission_denied(
    script: str, start: Path, run: Run
) -> None:
    # Not below pytest's own folder, into which only the user that runs the tests may look. Root may
    # write everywhere, so it is another user that meets the folder.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        folder = Path(place) / "work"
        shutil.copytree(start, folder)
        folder.chmod(0o555)
        data = f"paths.data={'more' if script == 'prepare.py' else 'data'}"
        ended = run(folder, script, data, f"hydra.run.dir={place}/out", WARM_PYTHON_USER=NOBODY)
        one_sentence(ended.returncode, ended.stderr, "Permission denied")
        assert sorted(os.listdir(folder)) == sorted(os.listdir(start))
        folder.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("tracking", [UNTRACKED, TRACKED], ids=["untracked", "tracked"])
def test_training_whose_folder_is_removed_starts_again(
    tracking: tuple[str, ...], start: Path, tmp_path: Path, run: Run, warm_python: Path
) -> None:
    """runs/ is removed during training.

    The command ends with a sentence, and the same command starts again.
    """
    folder = tmp_path / "work"
    shutil.copytree(start, folder)
    longer = ("training.max_steps=4000", "paths.model=model")
    command = [warm_python, PIPELINES / "train.py", *TINY, *tracking, *longer]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        points = folder / "runs" / "points"
        while process.poll() is None and not list(points.glob("*/checkpoints/last.ckpt")):
            time.sleep(0.01)
        # Training still makes files, in folders that one call has looked through already.
        for _ in range(100):
            shutil.rmtree(points, ignore_errors=True)
            if not points.exists():
                break
        _, err = process.communicate(timeout=300)
    finally:
        process.kill()
    one_sentence(process.returncode, err)
    again = run(folder, "train.py", "paths.model=model", tracking=tracking)
    assert again.returncode == 0, again.stderr
    assert json.loads(next(points.glob("*/done.json")).read_text())["step"] > 0
