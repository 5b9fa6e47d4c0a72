"""`dvc repro` and `dvc exp run` on a tiny experiment, in copies of the project."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from entry_points import ROOT, TINY

pytestmark = pytest.mark.slow

PARTS = ("conf", "pipelines", "dvc.yaml", ".dvcignore", ".gitignore", "params.yaml")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The unpacked project without git, its chain run once; and the hashes of what that built."""
    folder = copy_of_project(tmp_path_factory.mktemp("archive") / "project")
    dvc(folder, "config", "--local", "core.no_scm", "true")
    assert ran(dvc(folder, "repro")) == ["compose", "prepare", "train", "evaluate", "report"]
    return folder, hashes(folder / "build")


def copy_of_project(folder: Path) -> Path:
    folder.mkdir()
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file():
            shutil.copy(source, folder / name)
    # The sources are dependencies of the stages; what runs is the package as it is installed.
    shutil.copytree(ROOT / "src" / "attnlab", folder / "src" / "attnlab", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".dvc").mkdir()
    shutil.copy(ROOT / ".dvc" / "config", folder / ".dvc" / "config")
    choose(folder, overrides=[*TINY[1:], "tracking=none"], data="copy")
    return folder


def choose(folder: Path, **choices: object) -> None:
    file = folder / "params.yaml"
    params = yaml.safe_load(file.read_text(encoding="utf-8"))
    file.write_text(yaml.safe_dump({**params, **choices}, allow_unicode=True), encoding="utf-8")


def dvc(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "GIT_"))}
    # DVC runs the first `python` of PATH.
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "DVC_NO_ANALYTICS": "1"}
    environment |= {"OMP_NUM_THREADS": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    program = [sys.executable, "-m", "dvc", *arguments]
    ended = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def ran(output: str) -> list[str]:
    lines = [line for line in output.splitlines() if line.startswith("Running stage")]
    return [line.split("'")[1] for line in lines]


def stale(folder: Path) -> set[str]:
    """The stages whose own params are no more those that they ran with."""
    dvc(folder, "repro", "compose")
    changed = json.loads(dvc(folder, "status", "--json"))
    return {stage for stage, changes in changed.items() if "build/resolved.yaml" in json.dumps(changes)}


def hashes(build: Path) -> dict[str, str]:
    files = (path for path in sorted(build.rglob("*")) if path.is_file())
    return {str(path.relative_to(build)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_second_repro_does_nothing(archive: tuple[Path, dict[str, str]]) -> None:
    folder, built = archive
    assert {"resolved.yaml", "evaluation/metrics.json", "model/weights.safetensors", "report/index.html"} <= set(built)
    assert ran(dvc(folder, "repro")) == []
    assert hashes(folder / "build") == built


@pytest.mark.parametrize(
    ("choices", "stages"),
    [
        ({"overrides": [*TINY[1:], "tracking=none", "search.size=3"]}, {"evaluate", "report"}),
        ({"padding": "post_post"}, {"train", "report"}),
        ({"overrides": [*TINY[1:], "tracking=mlflow"]}, set()),
    ],
    ids=["search", "padding", "tracking"],
)
def test_a_choice_concerns_its_stages_alone(
    archive: tuple[Path, dict[str, str]], choices: dict[str, object], stages: set[str]
) -> None:
    folder, _ = archive
    params = (folder / "params.yaml").read_text(encoding="utf-8")
    choose(folder, **choices)
    try:
        assert stale(folder) == stages
    finally:
        (folder / "params.yaml").write_text(params, encoding="utf-8")


def test_the_same_bytes_in_another_folder_and_an_experiment(
    archive: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder = copy_of_project(tmp_path / "clone")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True, capture_output=True)
    assert ran(dvc(folder, "repro")) == ["compose", "prepare", "train", "evaluate", "report"]
    assert hashes(folder / "build") == archive[1]

    fewer = [choice for choice in TINY[1:] if not choice.startswith("model.attention.size")]
    choose(folder, overrides=[*fewer, "tracking=none"])
    assert ran(dvc(folder, "exp", "run", "-S", "model/attention=dot")) == ["compose", "train", "evaluate", "report"]
    resolved = yaml.safe_load((folder / "build" / "resolved.yaml").read_text(encoding="utf-8"))
    assert resolved["model"]["attention"]["_target_"].endswith("DotScore")


def test_sizes_count_too(archive: tuple[Path, dict[str, str]]) -> None:
    """DVC's run cache forgets keys called `size`: another beam or attention must not get the last one's results."""
    folder, built = archive
    sizes = ["search.size=7", "model.attention.size=9"]
    others = [choice for choice in TINY[1:] if choice.split("=")[0] not in {size.split("=")[0] for size in sizes}]
    params = (folder / "params.yaml").read_text(encoding="utf-8")
    choose(folder, overrides=[*others, "tracking=none", *sizes])
    try:
        assert {"train", "evaluate"} <= set(ran(dvc(folder, "repro")))
        assert "size 7" in json.loads((folder / "build/evaluation/signatures.json").read_text())["search"]
        assert hashes(folder / "build")["model/weights.safetensors"] != built["model/weights.safetensors"]
    finally:
        (folder / "params.yaml").write_text(params, encoding="utf-8")
