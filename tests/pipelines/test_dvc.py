"""`dvc repro` and `dvc exp run` on a tiny experiment, in copies of the project."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from dvc_project import STAGES, choose, commit, copy_of_project, dvc, hashes, ran
from entry_points import TINY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The unpacked project without git, its chain run once, and the hashes of what that built; `first.lock` is a copy
    of what DVC wrote of it."""
    folder = copy_of_project(tmp_path_factory.mktemp("archive") / "project")
    dvc(folder, "config", "--local", "core.no_scm", "true")
    assert ran(dvc(folder, "repro")) == STAGES
    shutil.copy(folder / "dvc.lock", folder / "first.lock")
    return folder, hashes(folder / "build")


def stale(folder: Path) -> set[str]:
    """The stages whose own params are no more those that they ran with."""
    dvc(folder, "repro", "compose")
    changed = json.loads(dvc(folder, "status", "--json"))
    return {stage for stage, changes in changed.items() if "build/resolved.yaml" in json.dumps(changes)}


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
    commit(folder)
    assert ran(dvc(folder, "repro")) == STAGES
    assert hashes(folder / "build") == archive[1]
    locked = (folder / "dvc.lock").read_bytes()
    assert locked == (archive[0] / "first.lock").read_bytes()

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
