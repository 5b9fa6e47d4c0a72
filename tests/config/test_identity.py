"""Which changes of config, data, code and libraries change an experiment's identity."""

from __future__ import annotations

import copy
import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from attnlab.config import identity
from attnlab.config.identity import config_digest, experiment_identity, used_code
from attnlab.experiment import experiment
from attnlab.experiment.composition import compose

SECTIONS = {"seed": 1, "model": {"encoder": {"cell": "gru", "layers": 1}, "attention": None}}
STAGES = {
    stage: getattr(experiment, f"{stage.upper()}_SOURCES") for stage in ("prepare", "train", "evaluate", "report")
}
TASKS = ("translation", "classification")


def sources(stage: str, task: str = "translation") -> list[str]:
    return [source.replace("task:", f"attnlab.experiment.{task}:") for source in STAGES[stage]]


@pytest.fixture(autouse=True)
def _fresh_sources():
    identity._source.cache_clear()
    yield
    identity._source.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A copy of the package, to be edited; the identity is computed from its files."""
    shutil.copytree(identity.FOLDER / "attnlab", tmp_path / "attnlab", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(identity, "FOLDER", tmp_path)
    return tmp_path / "attnlab"


@pytest.fixture(scope="module")
def experiments() -> dict[str, dict[str, Any]]:
    """{attention score: the sections of an experiment with it that training depends on}."""
    configs = {score: compose([f"model/attention={score}"]).config for score in ("dot", "general")}
    names = [name for name in experiment.TRAIN_SECTIONS if name != "seed"]
    return {score: {name: config[name] for name in names} for score, config in configs.items()}


def identities(experiments: dict[str, dict[str, Any]]) -> dict[str, str]:
    identity._source.cache_clear()
    return {score: experiment_identity(sections, "data", sources("train")) for score, sections in experiments.items()}


@pytest.fixture(scope="module")
def before(experiments: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The identities of the experiments with the package as it is."""
    return identities(experiments)


def append(path: Path, text: str = "\n_MORE = 1\n") -> None:
    assert path.is_file()
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def file_of(name: str, package: Path) -> Path:
    """The file in the package that defines a class or function."""
    files = (path for path in package.rglob("*.py") if re.search(rf"^(class|def) {name}\b", path.read_text(), re.M))
    return next(files)


def test_identity_changes_with_the_data_but_not_with_the_order_of_keys_and_sources():
    turned = {"model": {"attention": None, "encoder": {"layers": 1, "cell": "gru"}}, "seed": 1}
    assert config_digest(SECTIONS) == config_digest(turned)
    one = experiment_identity(SECTIONS, "data", ["attnlab.batch", "attnlab.files"])
    assert one != experiment_identity(SECTIONS, "date", ["attnlab.batch", "attnlab.files"])
    assert one == experiment_identity(turned, "data", ["attnlab.files", "attnlab.batch"])
    assert re.fullmatch("[0-9a-f]{16}", one)


def test_new_score_file_changes_no_identity(package, experiments, before):
    shutil.copy(package / "model/attention/dot.py", package / "model/attention/mine.py")
    assert identities(experiments) == before


def test_edited_score_changes_the_identities_of_its_experiments_only(package, experiments, before):
    append(package / "model/attention/dot.py")
    after = identities(experiments)
    assert (after["dot"] == before["dot"], after["general"] == before["general"]) == (False, True)


COMPUTES = ["Seq2SeqModule", "build_trainer", "Batch", "TextMetrics", "Seq2Seq", "best_checkpoints"]
SHOWS = ["TrainingBar", "ValidationLines", "terminal_bars"]


@pytest.mark.parametrize("name", [*COMPUTES, *SHOWS])
def test_edit_of_what_training_computes_with_changes_its_identity_and_of_what_it_shows_does_not(
    package, experiments, before, name
):
    append(file_of(name, package))
    after = identities(experiments)
    assert [after[score] == before[score] for score in after] == [name in SHOWS] * 2


def test_edit_of_the_training_function_changes_the_identity_and_of_its_neighbours_does_not(
    package, experiments, before
):
    file = package / "stages/train.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(f"{text}\n\ndef another() -> None:\n    return None\n", encoding="utf-8")
    assert identities(experiments)["dot"] == before["dot"]
    file.write_text(text.replace("pl.seed_everything(", "print() or pl.seed_everything("), encoding="utf-8")
    assert identities(experiments)["dot"] != before["dot"]


@pytest.mark.parametrize("folder", ["plots", "tracking", "report", "sweeps"])
def test_edit_of_what_only_shows_changes_no_training(package, experiments, before, folder):
    for file in (package / folder).rglob("*.py"):
        append(file)
    append(package / "errors.py")
    assert identities(experiments) == before


def test_other_version_of_torch_changes_the_identity_and_of_mlflow_does_not(monkeypatch, experiments, before):
    version = metadata.version
    for library, same in (("mlflow", True), ("torch", False), ("tokenizers", False)):
        monkeypatch.setattr(metadata, "version", lambda name, library=library: version(name) + "1" * (name == library))
        assert (identities(experiments)["dot"] == before["dot"]) is same, library


def test_module_of_the_user_counts_with_what_it_imports(package, experiments, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/__init__.py").write_text("")
    (tmp_path / "mine/scale.py").write_text("SCALE = 2\n")
    (tmp_path / "mine/score.py").write_text(
        "from attnlab.model.attention.dot import DotScore\n\nfrom .scale import SCALE\n\n\nclass Mine(DotScore): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    own = copy.deepcopy(experiments)
    own["dot"]["model"]["attention"] = {"_target_": "mine.score.Mine"}
    seen = [identities(own)["dot"]]
    for file in ("mine/score.py", "mine/scale.py", "attnlab/model/attention/dot.py"):
        append(tmp_path / file)
        seen.append(identities(own)["dot"])
    assert len(set(seen)) == 4


def test_source_that_does_not_exist_is_an_error():
    """A misspelt or moved source would otherwise leave the identity without a word."""
    with pytest.raises(ModuleNotFoundError, match=r"attnlab\.modle, which does not exist"):
        experiment_identity(SECTIONS, "data", ["attnlab.modle"])
    with pytest.raises(KeyError, match="trian"):
        experiment_identity(SECTIONS, "data", ["attnlab.stages.train:trian"])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("stage", STAGES)
def test_code_of_each_stage_leaves_out_the_other_stages(stage, task):
    found = {name.partition(":")[0] for name in used_code(sources(stage, task)).texts}
    assert {name for name in found if name.startswith("attnlab.stages.")} == {f"attnlab.stages.{stage}"}
    foreign = {"prepare": "model", "train": "plots", "evaluate": "report", "report": "model"}[stage]
    assert not any(name.startswith(f"attnlab.{foreign}.") for name in found)
    scores = {path.stem for path in (identity.FOLDER / "attnlab/model/attention").glob("*.py")} & {"dot", "bahdanau"}
    assert not found & {f"attnlab.model.attention.{score}" for score in scores}
