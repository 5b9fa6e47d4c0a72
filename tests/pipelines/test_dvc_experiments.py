"""What people do with DVC beside `repro`: experiments in a queue, tables and pictures of them, a remote, a matrix."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dvc_project import STAGES, choose, commit, copy_of_project, dvc, hashes, ran
from entry_points import ROOT, TINY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with its chain run and `dvc.lock` committed."""
    folder = copy_of_project(tmp_path_factory.mktemp("experiments") / "clone")
    commit(folder)
    assert ran(dvc(folder, "repro")) == STAGES
    commit(folder)
    return folder


def test_a_remote_gives_back_what_was_built(clone: Path, tmp_path: Path) -> None:
    built = hashes(clone / "build")
    dvc(clone, "remote", "add", "--local", "--default", "storage", str(tmp_path / "storage"))
    dvc(clone, "push")
    shutil.rmtree(clone / ".dvc" / "cache")
    shutil.rmtree(clone / "build")
    dvc(clone, "pull")
    assert hashes(clone / "build") == built
    assert ran(dvc(clone, "repro")) == []


def test_queued_experiments_stand_beside_each_other(clone: Path) -> None:
    for size in (5, 6):
        dvc(clone, "exp", "run", "--queue", "--name", f"beam-{size}", "-S", f"overrides={_overrides(size)}")
    dvc(clone, "exp", "run", "--run-all")
    shown = dvc(clone, "exp", "show", "--csv", "--hide-workspace")
    header, *rows = [line.split(",") for line in shown.splitlines()]
    assert "bleu" in header
    assert {"beam-5", "beam-6"} <= {row[header.index("Experiment")] for row in rows}
    assert all(row[header.index("bleu")] for row in rows)

    difference = json.loads(dvc(clone, "metrics", "diff", "--json", "--all", "HEAD", "beam-5"))
    assert {"bleu", "chrf", "token_nll"} <= set(difference["build/evaluation/metrics.json"])

    dvc(clone, "plots", "diff", "HEAD", "beam-6", "--out", "plots")
    page = (clone / "plots" / "index.html").read_text(encoding="utf-8")
    pictures = {path.name for path in (clone / "plots").rglob("*.png")}
    for name in ("curves", "attention_1", "lengths"):
        assert f"{name}.png" in page
        assert sum(picture.endswith(f"{name}.png") for picture in pictures) == 2, pictures


def test_commands_of_the_dvc_page_run_in_order_after_the_demo(tmp_path: Path) -> None:
    section = (ROOT / "docs" / "dvc.md").read_text(encoding="utf-8").partition("\n## The commands\n")[2]
    commands = section.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert commands[0].startswith("git add dvc.lock && git commit")
    folder = copy_of_project(tmp_path / "clone")
    any_attention = [choice for choice in TINY[1:] if not choice.startswith(("model.attention.", "training.max_steps"))]
    choose(folder, training={"max_steps": 4}, overrides=[*any_attention, "tracking=none"])
    commit(folder)
    dvc(folder, "repro")

    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "GIT_"))},
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DVC_NO_ANALYTICS": "1",
        "OMP_NUM_THREADS": "1",
    }
    printed = {}
    for line in commands:
        if "compare_attentions" in line:
            continue  # eight models; see the test of the matrix
        line = line.replace("max_steps=500", "max_steps=5")
        ended = subprocess.run(
            ["bash", "-ec", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, line + ended.stdout + ended.stderr
        printed[line.partition("  ")[0]] = ended.stdout
    assert "build/evaluation/metrics.json" in printed["dvc metrics diff HEAD dot"]
    assert (folder / "dvc_plots" / "index.html").is_file()
    assert "max_steps: 5" in (folder / "params.yaml").read_text(encoding="utf-8")


def _overrides(size: int) -> str:
    others = [choice for choice in TINY[1:] if not choice.startswith("search.size")]
    return json.dumps([*others, "tracking=none", f"search.size={size}"])


def test_matrix_of_attentions_is_trained_and_compared(clone: Path) -> None:
    """With fewer of them, for each starts three processes."""
    file = clone / "examples" / "compare_attentions" / "dvc.yaml"
    chain = yaml.safe_load(file.read_text(encoding="utf-8"))
    few = [f"build/attentions/{name}" for name in ("none-1", "dot-1")]
    chain["vars"] = [{"attentions": ["none", "dot"]}, {"seeds": [1]}]
    compared = chain["stages"]["compare"]
    command = compared["cmd"].partition(' "builds=[')[0]
    compared["cmd"] = f"{command} builds=[{','.join(few)}] samples=100"
    compared["deps"] = [dep for dep in compared["deps"] if not dep.startswith("build/") or dep in few]
    file.write_text(yaml.safe_dump(chain), encoding="utf-8")
    any_attention = [choice for choice in TINY[1:] if not choice.startswith("model.attention.")]
    choose(clone, overrides=[*any_attention, "tracking=none"])

    example = str(file.relative_to(clone))
    stages = [stage.removeprefix(f"{example}:") for stage in ran(dvc(clone, "repro", example))]
    assert set(stages) - {"compose", "prepare"} == {"model@none-1", "model@dot-1", "compare"}
    comparison = clone / "build" / "attentions" / "comparison"
    page = (comparison / "index.html").read_text(encoding="utf-8")
    assert "no attention" in page
    assert "dot" in page
    first = hashes(comparison)
    assert ran(dvc(clone, "repro", example)) == []
    dvc(clone, "repro", "--force", "--single-item", f"{example}:compare")
    assert hashes(comparison) == first
    assert not any("compare_attentions" in stage for stage in ran(dvc(clone, "repro")))
