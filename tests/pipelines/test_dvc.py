"""`dvc repro`, experiments, remotes and the matrix of attentions.

They run on a tiny experiment in copies of the project.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dvc_project import STAGES, choose, commit, copy_of_project, dvc, dvc_on_screen, hashes, ran
from entry_points import ROOT, TINY

from attnlab.config.params import leaves

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_path")]

# The table and the experiments below choose attentions, of which some have no size.
ANY_ATTENTION = [
    choice
    for choice in TINY[1:]
    if not choice.startswith(("model.attention.", "training.max_steps"))
]


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, warm_path: None
) -> tuple[Path, dict[str, str]]:
    """A repository after a run of its chain, and the hashes of the chain's outputs.

    `dvc.lock` is committed.
    """
    folder = copy_of_project(tmp_path_factory.mktemp("repository") / "project")
    choose(folder, training={"max_steps": 4}, overrides=[*ANY_ATTENTION, "tracking=none"])
    commit(folder)
    assert ran(dvc(folder, "repro")) == STAGES
    commit(folder)
    return folder, hashes(folder / "build")


@pytest.fixture
def copy(project: tuple[Path, dict[str, str]], tmp_path: Path) -> Path:
    """The project with its history, its cache and what it built, to change."""
    return shutil.copytree(project[0], tmp_path / "copy", symlinks=True)


def test_second_repro_runs_no_stage(project: tuple[Path, dict[str, str]]) -> None:
    folder, built = project
    assert {
        "resolved.yaml",
        "evaluation/metrics.json",
        "model/weights.safetensors",
        "report/index.html",
    } <= set(built)
    assert ran(dvc(folder, "repro")) == []
    assert hashes(folder / "build") == built


@pytest.mark.parametrize(
    ("choices", "stages"),
    [
        ({"overrides": [*ANY_ATTENTION, "tracking=none", "search.size=3"]}, {"evaluate", "report"}),
        ({"padding": "post_post"}, {"train", "report"}),
        ({"overrides": [*ANY_ATTENTION, "tracking=mlflow"]}, set()),
    ],
    ids=["search", "padding", "tracking"],
)
def test_choice_makes_only_its_own_stages_stale(
    choices: dict[str, object], stages: set[str], copy: Path
) -> None:
    choose(copy, **choices)
    dvc(copy, "repro", "compose")
    changed = json.loads(dvc(copy, "status", "--json"))
    assert {
        stage for stage, changes in changed.items() if "build/sections/" in json.dumps(changes)
    } == stages


def test_setting_called_size_is_seen_by_the_run_cache(copy: Path) -> None:
    """DVC's run cache ignores params called `size`.

    Another beam must not get the results of the last one.
    """
    others = [choice for choice in ANY_ATTENTION if not choice.startswith("search.size")]
    choose(copy, overrides=[*others, "tracking=none", "search.size=7"])
    assert ran(dvc(copy, "repro", "evaluate")) == ["compose", "evaluate"]
    assert "size 7" in json.loads((copy / "build/evaluation/signatures.json").read_text())["search"]


@pytest.mark.long
def test_edited_comment_trains_nothing_again(
    project: tuple[Path, dict[str, str]], copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC sees another file, and the command of the stage finds that the training is finished."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(copy / "src"))  # the code that runs is the edited one
    for module in ("training/module.py", "data/prepare.py", "tasks/translation/evaluation.py"):
        path = copy / "src" / "attnlab" / module
        text = path.read_text(encoding="utf-8").replace('"""', '"""Edited. ', 1)
        path.write_text(f"# A comment.\n{text}", encoding="utf-8")
    trained = {path: path.stat().st_mtime_ns for path in copy.glob("runs/points/*/done.json")}
    assert len(trained) == 1

    # Each stage imports one of these modules, or a package with it.
    assert ran(dvc(copy, "repro")) == ["compose", "prepare", "train", "evaluate", "report"]
    built = hashes(copy / "build")
    assert built.keys() == project[1].keys()
    others = {name for name, digest in built.items() if digest != project[1][name]}
    assert others == {"report/index.html"}  # which names the revision of the code
    assert {
        path: path.stat().st_mtime_ns for path in copy.glob("runs/points/*/done.json")
    } == trained

    # Code that does something else is another experiment.
    path = copy / "src" / "attnlab" / "training" / "module.py"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n_MORE = 1\n", encoding="utf-8")
    assert ran(dvc(copy, "repro", "--single-item", "train")) == ["train"]
    assert len(list(copy.glob("runs/points/*/done.json"))) == 2


@pytest.mark.long
def test_unpacked_archive_in_another_folder_builds_the_same_bytes(
    project: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stages are new interpreters here, as a user's are."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    archive = copy_of_project(tmp_path / "archive")
    shutil.copy(project[0] / "params.yaml", archive)
    dvc(archive, "config", "--local", "core.no_scm", "true")
    assert ran(dvc(archive, "repro")) == STAGES
    assert hashes(archive / "build") == project[1]
    committed = ["git", "show", "HEAD:dvc.lock"]
    locked = subprocess.run(committed, cwd=project[0], check=True, capture_output=True).stdout
    assert (archive / "dvc.lock").read_bytes() == locked


def test_remote_restores_everything_that_was_built(
    project: tuple[Path, dict[str, str]], copy: Path, tmp_path: Path
) -> None:
    folder, built = copy, project[1]
    dvc(folder, "remote", "add", "--local", "--default", "storage", str(tmp_path / "storage"))
    dvc(folder, "push")
    shutil.rmtree(folder / ".dvc" / "cache")
    shutil.rmtree(folder / "build")
    dvc(folder, "pull")
    assert hashes(folder / "build") == built
    assert json.loads(dvc(folder, "status", "--json")) == {}
    assert ran(dvc(folder, "repro")) == []


@pytest.mark.long
def test_commands_of_the_dvc_page_work_in_order_after_the_first_repro(copy: Path) -> None:
    section = (
        (ROOT / "docs" / "dvc.md").read_text(encoding="utf-8").partition("\n## The commands\n")[2]
    )
    commands = section.partition("```sh\n")[2].partition("```")[0].splitlines()
    environment = {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DVC_", "GIT_"))
        },
        **{
            f"GIT_{who}_{what}": "a@b.c"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
        "DVC_NO_ANALYTICS": "1",
    }
    # The demo's lock is committed already; the matrix has a test of its own.
    assert "git add dvc.lock" in commands.pop(0)
    assert "compare_attentions" in commands.pop()
    printed = {}
    for line in commands:
        line = line.replace("max_steps=500", "max_steps=5")
        ended = subprocess.run(
            ["bash", "-ec", line],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, line + ended.stdout + ended.stderr
        printed[line.partition("  ")[0]] = ended.stdout
    assert "max_steps: 5" in (copy / "params.yaml").read_text(encoding="utf-8")
    resolved = yaml.safe_load((copy / "build" / "resolved.yaml").read_text(encoding="utf-8"))
    assert resolved["model"]["attention"]["_target_"].endswith("DotScore")

    header, *rows = csv.reader(dvc(copy, "exp", "show", "--csv", "--hide-workspace").splitlines())
    # Metrics and params come first, and what the stages depend on is beyond the screen.
    params = yaml.safe_load((copy / "params.yaml").read_text(encoding="utf-8"))
    shown = header[header.index("aer") :]
    assert shown[:5] == ["aer", "bleu", "chrf", "exact_match", "perplexity"]
    keys = {key for key, _ in leaves(params)}
    assert set(shown[5 : 5 + len(keys)]) == keys
    after = shown[5 + len(keys) :]
    assert all(name == "conf" or "/" in name for name in after), after
    name, bleu = header.index("Experiment"), header.index("bleu")
    scores = {row[name]: row[bleu] for row in rows if row[name]}
    assert "dot" in scores
    assert len(scores) >= 3  # with the two of the queue
    assert all(scores.values())
    assert "build/report/summary.json" in printed["dvc metrics diff HEAD dot"]
    whole = "dvc metrics diff HEAD dot --targets build/evaluation/metrics.json"
    assert "attention_entropy" in printed[whole]
    page = (copy / "dvc_plots" / "index.html").read_text(encoding="utf-8")
    pictures = [path.name for path in (copy / "dvc_plots").rglob("*.png")]
    for name in ("attention_1", "lengths"):
        assert f"{name}.png" in page
        assert sum(picture.endswith(f"{name}.png") for picture in pictures) == 2, pictures


@pytest.mark.long
@pytest.mark.skipif(shutil.which("less") is None, reason="less, DVC's pager, is not installed")
def test_exp_show_has_the_main_metrics_and_choices_on_the_first_screen(copy: Path) -> None:
    """DVC squeezes no column for its pager, so that only the order of columns counts."""
    dvc(copy, "exp", "run", "--queue", "--name", "a-long-name", "-S", "seed=2")
    dvc(copy, "exp", "run", "--run-all")
    lines = dvc_on_screen(copy, "exp", "show", columns=150)
    (header,) = [line for line in lines if line.startswith("  Experiment")]
    (row,) = [line for line in lines if "a-long-name" in line]
    summary = json.loads((copy / "build" / "report" / "summary.json").read_text(encoding="utf-8"))
    assert len(summary) == 5
    assert set(summary) < set(header.split())
    # Behind the columns of the queue, State and Executor
    values = row.partition("Dvc-task")[2].split()[: len(summary)]
    assert [float(value) >= 0 for value in values] == [True] * len(summary)
    assert "data" in header.split(), "of the choices"


def test_plots_diff_draws_the_curves_of_both_experiments_in_one_chart(copy: Path) -> None:
    others = {"training": {"max_steps": 8}}
    choose(copy, **others)
    dvc(copy, "repro")
    dvc(copy, "plots", "diff", "HEAD", "workspace")
    page = (copy / "dvc_plots" / "index.html").read_text(encoding="utf-8")
    charts = re.findall(r"var spec = (.*);\n", page)
    specs = [json.loads(chart) for chart in charts]
    titles = [spec["title"]["text"].removeprefix("build/report/curves/") for spec in specs]
    assert titles[0] == "validation/free_running/bleu.csv", "validation comes first"
    assert {"validation/teacher_forced/token_nll.csv", "train/token_nll.csv"} <= set(titles)

    rows = specs[titles.index("validation/teacher_forced/token_nll.csv")]["data"]["values"]
    assert {row["rev"]: row["step"] for row in rows} == {"HEAD": "4", "workspace": "8"}
    assert all(float(row["token_nll"]) > 0 for row in rows)
    assert "img { max-width: 550px;" in page, "DVC's page is not ours"


@pytest.mark.long
def test_matrix_of_attentions_is_trained_and_compared(copy: Path) -> None:
    """With fewer of them, for each starts three processes."""
    example = copy / "examples" / "compare_attentions"
    file = example / "dvc.yaml"
    chain = yaml.safe_load(file.read_text(encoding="utf-8"))
    variables = {name: value for each in chain["vars"] for name, value in each.items()}
    chain["vars"] = [{**variables, "attentions": ["none", "dot"], "seeds": [1]}]
    compared = chain["stages"]["compare"]
    command = compared["cmd"].partition(' "builds=[')[0]
    compared["cmd"] = f'{command} "builds=[${{build}}/none-1, ${{build}}/dot-1]" samples=100'
    few = ("build/none-1", "build/dot-1")
    compared["deps"] = [
        dep for dep in compared["deps"] if not dep.startswith("build/") or dep in few
    ]
    file.write_text(yaml.safe_dump(chain), encoding="utf-8")

    assert set(ran(dvc(example, "repro"))) == {"model@none-1", "model@dot-1", "compare"}
    page = (example / "build" / "comparison" / "index.html").read_text(encoding="utf-8")
    assert "no attention" in page
    assert "dot" in page
    assert len(list(copy.glob("runs/points/*/done.json"))) == 3, "not in the runs folder"
    assert ran(dvc(example, "repro")) == []


def test_status_after_repro_is_clean_without_the_example(
    project: tuple[Path, dict[str, str]],
) -> None:
    assert dvc(project[0], "status").splitlines() == ["Data and pipelines are up to date."]
