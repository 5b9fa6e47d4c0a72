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
from attnlab.experiment import sections as experiment
from attnlab.experiment.composition import compose
from attnlab.experiment.evaluation import EVALUATE_SOURCES
from attnlab.experiment.point import TRAIN_SOURCES
from attnlab.experiment.preparation import PREPARE_SOURCES
from attnlab.report.reporting import REPORT_SOURCES
from attnlab.tasks.saved import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = {"seed": 1, "model": {"encoder": {"cell": "gru", "layers": 1}, "attention": None}}
STAGES = {
    "prepare": PREPARE_SOURCES,
    "train": TRAIN_SOURCES,
    "evaluate": EVALUATE_SOURCES,
    "report": REPORT_SOURCES,
}
TASKS = {task.name: task for task in SHIPPED}


def sources(stage: str, task: str = "translation") -> list[str]:
    return TASKS[task].with_own(STAGES[stage])


@pytest.fixture(autouse=True)
def _fresh_sources():
    identity._source.cache_clear()
    yield
    identity._source.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A copy of the package, to be edited; the identity is computed from its files."""
    shutil.copytree(
        identity.FOLDER / "attnlab",
        tmp_path / "attnlab",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
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
    return {
        score: experiment_identity(sections, "data", sources("train"))
        for score, sections in experiments.items()
    }


@pytest.fixture(scope="module")
def before(experiments: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The identities of the experiments with the package as it is."""
    return identities(experiments)


def append(path: Path, text: str = "\n_MORE = 1\n") -> None:
    assert path.is_file()
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def file_of(name: str, package: Path) -> Path:
    """The file in the package that defines a class or function."""
    files = (
        path
        for path in package.rglob("*.py")
        if re.search(rf"^(class|def) {name}\b", path.read_text(), re.M)
    )
    return next(files)


def test_identity_changes_with_the_data_but_not_with_the_order_of_keys_and_sources():
    turned = {"model": {"attention": None, "encoder": {"layers": 1, "cell": "gru"}}, "seed": 1}
    assert config_digest(SECTIONS) == config_digest(turned)
    one = experiment_identity(SECTIONS, "data", ["attnlab.batch", "attnlab.files"])
    assert one != experiment_identity(SECTIONS, "date", ["attnlab.batch", "attnlab.files"])
    assert one == experiment_identity(turned, "data", ["attnlab.files", "attnlab.batch"])
    assert re.fullmatch("[0-9a-f]{16}", one)


# Rows of the table in docs/dvc.md, with edits that are of their kind: (file, what stands there,
# what replaces it).
SCORE, SETTINGS = "model/attention/dot.py", "training/settings.py"
STAGE, TASK = "experiment/training.py", "tasks/translation/task.py"
IMPORTS = (
    "from torch import Tensor\n",
    "from attnlab.model.attention.score import Score, check_equal_widths\n",
)
FORWARD = "        return query @ keys.transpose(1, 2)\n"
SAME_CODE = {
    "a comment, a docstring": [
        (SCORE, FORWARD, f"        # The product.\n{FORWARD[:-1]}  # (B, T, S)\n"),
        (SCORE, '"""The dot score."""', '"""Dot."""'),
        (SCORE, "score(s, h) = s · h", "score(h, s) = h · s"),
        (STAGE, "    # The attention of the same few sentences at every validation.\n", ""),
        (STAGE, "    watch: more callbacks.\n", ""),
        (TASK, "    def sizes(", "    # They are small.\n    def sizes("),
    ],
    (
        "line breaks, blank lines, quotes, parentheses around an expression, "
        "the spelling of a number"
    ): [
        (
            SCORE,
            FORWARD,
            "        return query @ keys.transpose(\n            0x1,\n            2,\n        )\n",
        ),
        (SCORE, "return query @", "\n\n        return (query) @"),
        (SCORE, '"dot", query_size', "'dot', query_size"),
        (STAGE, '"training" / "history.csv"', "'training' / ('history.csv')"),
    ],
    "what stands under `if TYPE_CHECKING:`, `pass`, `...`": [
        (SCORE, FORWARD, f"        pass\n        ...\n{FORWARD}"),
        (
            SCORE,
            IMPORTS[0],
            f"{IMPORTS[0]}\nif TYPE_CHECKING:\n    from attnlab.plots.figure import png_bytes\n\n",
        ),
    ],
    "in the stage's and the task's own module: a function that the stage does not call": [
        (
            STAGE,
            "def make_module(",
            "def another() -> None:\n    return None\n\n\ndef make_module(",
        ),
        (
            TASK,
            "    def check(",
            "    def another(self) -> None:\n        return None\n\n    def check(",
        ),
    ],
}
OTHER_CODE = {
    "a statement, a value, a default, a decorator, an assertion": [
        (SCORE, FORWARD, f"        print()\n{FORWARD}"),
        (SCORE, FORWARD, f"        assert len(query)\n{FORWARD}"),
        (SCORE, "(1, 2)", "(2, 1)"),
        (SCORE, "key_size: int)", "key_size: int = 1)"),
        (SCORE, "    def forward", "    @torch.no_grad()\n    def forward"),
        (STAGE, "pl.seed_everything(", "print() or pl.seed_everything("),
        (STAGE, "def make_module(", "@torch.no_grad()\ndef make_module("),
        # What the function takes from its module counts with it.
        (STAGE, "seed=experiment.seed", "seed=SEED"),
        (STAGE, "def make_trainer(", "SEED = 1\n\n\ndef make_trainer("),
        (TASK, "    def sizes(", "    @functools.cache\n    def sizes("),
    ],
    "a type annotation, for settings are checked against it": [
        (SCORE, "query_size: int", "query_size: float"),
        (SETTINGS, "patience: PositiveInt | None", "patience: PositiveInt"),
    ],
    (
        "a name, also of a local variable; "
        "the order of definitions or imports, though the code does the same"
    ): [
        (SETTINGS, "of_epochs", "by_epochs"),
        (SCORE, "\n".join(IMPORTS), "\n".join(reversed(IMPORTS))),
    ],
}


def edit(package: Path, file: str, old: str, new: str) -> None:
    text = (package / file).read_text(encoding="utf-8")
    assert old in text, (file, old)
    (package / file).write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("row", SAME_CODE)
def test_identity_after_an_edit_of_what_code_does_not_do_stays_the_same(
    row, package, experiments, before
):
    for change in SAME_CODE[row]:
        edit(package, *change)
        assert identities(experiments) == before, change


@pytest.mark.parametrize("row", OTHER_CODE)
def test_identity_after_an_edit_of_what_code_does_changes(row, package, experiments, before):
    last = before["dot"]
    for change in OTHER_CODE[row]:
        edit(package, *change)
        now = identities(experiments)["dot"]
        assert now != last, change
        last = now


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


@pytest.mark.parametrize("folder", ["plots", "runs", "experiment", "report", "studies"])
def test_edit_of_what_only_shows_changes_no_training(package, experiments, before, folder):
    for file in (package / folder).rglob("*.py"):
        append(file)
    append(package / "errors.py")
    assert identities(experiments) == before


def test_other_version_of_torch_changes_the_identity_and_of_mlflow_does_not(
    monkeypatch, experiments, before
):
    version = metadata.version
    for library, same in (("mlflow", True), ("torch", False), ("tokenizers", False)):
        monkeypatch.setattr(
            metadata,
            "version",
            lambda name, library=library: version(name) + "1" * (name == library),
        )
        assert (identities(experiments)["dot"] == before["dot"]) is same, library


def test_module_of_the_user_counts_with_what_it_imports(
    package, experiments, tmp_path, monkeypatch
):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/__init__.py").write_text("")
    (tmp_path / "mine/scale.py").write_text("SCALE = 2\n")
    (tmp_path / "mine/score.py").write_text(
        "from attnlab.model.attention.dot import DotScore\n\nfrom .scale import SCALE\n\n\nclass "
        "Mine(DotScore): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    own = copy.deepcopy(experiments)
    own["dot"]["model"]["attention"] = {"_target_": "mine.score.Mine"}
    seen = [identities(own)["dot"]]
    for file in ("mine/score.py", "mine/scale.py", "attnlab/model/attention/dot.py"):
        append(tmp_path / file)
        seen.append(identities(own)["dot"])
    assert len(set(seen)) == 4


def test_module_of_the_user_counts_with_the_file_beside_it_and_without_its_settings(
    experiments, tmp_path, monkeypatch
):
    (tmp_path / "my_helpers.py").write_text("SCALE = 2\n")
    (tmp_path / "my_scores.py").write_text(
        "from attnlab.model.attention.dot import DotScore\nimport my_helpers\n\n\nclass "
        "Mine(DotScore): ...\n"
    )
    (tmp_path / "params.yaml").write_bytes("seed: 1  # 한글\n".encode("cp949"))
    monkeypatch.syspath_prepend(str(tmp_path))
    own = copy.deepcopy(experiments)
    own["dot"]["model"]["attention"] = {"_target_": "my_scores.Mine"}
    before = identities(own)["dot"]
    (tmp_path / "params.yaml").write_text("seed: 2\n")
    assert identities(own)["dot"] == before
    append(tmp_path / "my_helpers.py")
    assert identities(own)["dot"] != before


def test_package_in_a_target_folder_of_pip_counts_as_a_library(tmp_path, monkeypatch):
    (tmp_path / "compiled").mkdir()
    (tmp_path / "compiled/__init__.py").write_text("from compiled._core import add\n")
    (tmp_path / "compiled-1.0.dist-info").mkdir()
    (tmp_path / "compiled-1.0.dist-info/METADATA").write_text("Name: compiled\nVersion: 1.0\n")
    (tmp_path / "compiled-1.0.dist-info/RECORD").write_text("compiled/__init__.py,,\n")
    (tmp_path / "my_adding_score.py").write_text(
        "from attnlab.model.attention.dot import DotScore\nimport compiled\n\n\nclass "
        "Mine(DotScore): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    code = used_code(["my_adding_score"])
    assert "compiled" in code.libraries
    assert not any(name.startswith("compiled") for name in code.texts)


def test_identity_changes_with_the_name_of_a_module(package, experiments, before):
    moved = copy.deepcopy(experiments)
    moved["dot"]["model"]["attention"]["_target_"] = "attnlab.model.attention.product.DotScore"
    (package / SCORE).rename(package / "model/attention/product.py")
    assert identities(moved)["dot"] != before["dot"]


def test_identity_of_a_report_changes_with_a_page_beside_its_module(package):
    last = experiment_identity({}, "data", sources("report"))
    append(package / "tasks/translation/report/translation.html", "<p>more</p>")
    identity._source.cache_clear()
    assert experiment_identity({}, "data", sources("report")) != last


OF_A_TRAINING = {
    "seed": "seed=2",
    "padding": "padding=post_post",
    "model": "model.encoder.dropout=0.1",
    "training": "training.max_steps=7",
    "hardware": "hardware.threads=3",
    "trainer": "+trainer.benchmark=true",
    "callbacks": "+callbacks.device._target_=pytorch_lightning.callbacks.DeviceStatsMonitor",
}


def test_identity_changes_with_each_section_that_training_reads_and_with_no_other():
    def identity_with(*overrides: str) -> str:
        composed = compose(overrides)
        return composed.identity(experiment.TRAIN_SECTIONS, "data", TRAIN_SOURCES)

    assert {*OF_A_TRAINING} == {*experiment.TRAIN_SECTIONS}
    changed = [identity_with(override) for override in OF_A_TRAINING.values()]
    same = identity_with(
        "tracking=none", "paths.runs=elsewhere", "search.size=3", "save_every_minutes=1"
    )
    assert same == identity_with()
    assert len({same, *changed}) == 1 + len(changed)


# The other rows of that table, and the test of each.
TESTED_BY = {
    "a new module, such as another score; a module that the experiment does not use": (
        "stays the same",
        test_new_score_file_changes_no_identity,
    ),
    "messages, progress bars, plots, what MLflow and sweeps record, how a config is composed": (
        "stays the same for a training",
        test_edit_of_what_only_shows_changes_no_training,
    ),
    (
        "`tracking`, `loggers`, `paths`, `search`, `save_every_minutes` "
        "and other sections that training does not read"
    ): (
        "stays the same for a training",
        test_identity_changes_with_each_section_that_training_reads_and_with_no_other,
    ),
    (
        "another version of MLflow, DVC, Hydra or Python, "
        "if the code and the libraries below stay as they are"
    ): (
        "stays the same",
        test_other_version_of_torch_changes_the_identity_and_of_mlflow_does_not,
    ),
    "the name or place of a module": ("changes", test_identity_changes_with_the_name_of_a_module),
    "a page or style sheet beside a module of attnlab (evaluation and report alone)": (
        "changes",
        test_identity_of_a_report_changes_with_a_page_beside_its_module,
    ),
    "a file beside your own module that it does not import, such as `params.yaml`": (
        "stays the same",
        test_module_of_the_user_counts_with_the_file_beside_it_and_without_its_settings,
    ),
    (
        "your own module with a class that the config names, or what it imports, "
        "but for installed packages"
    ): (
        "changes",
        test_module_of_the_user_counts_with_what_it_imports,
    ),
    "`seed`, `padding`, `model`, `training`, `hardware`, `trainer`, `callbacks`": (
        "changes",
        test_identity_changes_with_each_section_that_training_reads_and_with_no_other,
    ),
    (
        "the prepared data (a setting of `data` prepares others), the weights that "
        "`training.initial_weights` names"
    ): (
        "changes",
        test_identity_changes_with_the_data_but_not_with_the_order_of_keys_and_sources,
    ),
    "another version of torch, NumPy, pytorch-lightning, torchmetrics, tokenizers, datasets, "
    "sacreBLEU or Babel, where the code imports it": (
        "changes",
        test_other_version_of_torch_changes_the_identity_and_of_mlflow_does_not,
    ),
}


def test_table_of_edits_in_the_documentation_has_exactly_the_tested_rows():
    page = (
        (ROOT / "docs" / "dvc.md")
        .read_text(encoding="utf-8")
        .partition("\n## What trains a model again\n")[2]
    )
    table = page.partition("| --- | --- |\n")[2].partition("\n\n")[0]
    written = dict(line.strip("| ").split(" | ") for line in table.splitlines())
    assert written == {
        **dict.fromkeys(SAME_CODE, "stays the same"),
        **dict.fromkeys(OTHER_CODE, "changes"),
        **{row: result for row, (result, _) in TESTED_BY.items()},
    }


def test_source_that_does_not_exist_is_an_error():
    """A misspelt or moved source would otherwise leave the identity without a word."""
    with pytest.raises(ModuleNotFoundError, match=r"attnlab\.modle, which does not exist"):
        experiment_identity(SECTIONS, "data", ["attnlab.modle"])
    with pytest.raises(KeyError, match="trian"):
        experiment_identity(SECTIONS, "data", ["attnlab.experiment.training:trian"])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("stage", STAGES)
def test_code_of_each_stage_leaves_out_the_other_stages(stage, task):
    found = {name.partition(":")[0] for name in used_code(sources(stage, task)).texts}
    of_stages = {each: own[0].partition(":")[0] for each, own in STAGES.items()}
    assert found & set(of_stages.values()) == {of_stages[stage]}
    foreign = {"prepare": "model", "train": "plots", "evaluate": "report", "report": "model"}[stage]
    assert not any(name.startswith(f"attnlab.{foreign}.") for name in found)
    scores = {path.stem for path in (identity.FOLDER / "attnlab/model/attention").glob("*.py")} & {
        "dot",
        "bahdanau",
    }
    assert not found & {f"attnlab.model.attention.{score}" for score in scores}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("stage", ["train", "evaluate"])
def test_code_of_each_stage_that_runs_a_model_has_all_that_makes_it_faster(stage, task):
    # The config of a translation names a search.
    searches = ["attnlab.search.greedy"] if task == "translation" else []
    found = {
        name
        for name in used_code([*sources(stage, task), *searches]).texts
        if f"{name}.".startswith("attnlab.model.fast.")
    }
    room = {path.stem for path in (identity.FOLDER / "attnlab/model/fast").glob("*.py")}
    expected = {f"attnlab.model.fast.{name}" for name in room - {"__init__"}}
    if task == "classification":
        expected.remove("attnlab.model.fast.packed")
    assert found == expected | {"attnlab.model.fast"}
