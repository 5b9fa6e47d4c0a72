"""The user's own classes in a config, through the real entry points.

They are callbacks, loggers, scores and corpora.
"""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from entry_points import ANY_ATTENTION, ROOT, TINY, Command, succeeded
from lightning_utilities.core.imports import RequirementCache
from test_refusals import refused

import attnlab

OWN = """
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import datasets
import pytorch_lightning as pl
import torch

from attnlab.data.corpus import Corpus, SentenceCorpus
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.data.trainers import CharacterTrainer, WordTrainer
from attnlab.model.attention.score import Score
from attnlab.model.bridges import Bridge
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.readouts import Readout
from attnlab.model.recurrence import RecurrentState
from attnlab.model.scopes import Scope, Window
from attnlab.training.teacher_forcing import TeacherForcing
from pytorch_lightning.loggers import CSVLogger

if TYPE_CHECKING:
    from a_missing_library import Run


class Noting(pl.Callback):
    def __init__(self, *, every: int = 1, **more) -> None:
        self.every, self.more = every, more

    def on_train_end(self, trainer, pl_module) -> None:
        Path("noted.txt").write_text(f"{self.every} {self.more}")


class RunLogger(CSVLogger):
    def __init__(self, *, save_dir: str, run: Run | None = None) -> None:
        super().__init__(save_dir)


class Euclidean(Score):
    def __init__(self, *, query_size: int, key_size: int, temperature: float) -> None:
        super().__init__()
        self.scale = torch.nn.Linear(query_size, key_size)
        self.temperature = temperature

    def forward(self, query, keys):
        return -torch.cdist(self.scale(query), keys) / self.temperature


class All(Scope):
    def forward(self, query, t, positions, lengths):
        return Window()


class Zero(Bridge):
    def __init__(self, decoder_shape) -> None:
        super().__init__()
        self.shape = decoder_shape

    def forward(self, encoded, source_mask):
        shape = self.shape.layers, len(source_mask), self.shape.size
        return RecurrentState(encoded.outputs.new_zeros(*shape), None)


class Soft(Normaliser):
    def forward(self, scores):
        return scores.softmax(-1)


class Half(TeacherForcing):
    def ratio_at(self, step):
        return 0.5


class Descent(torch.optim.SGD):
    def __init__(self, params, *, rate: float, **more) -> None:
        super().__init__(params, lr=rate, **more)


class Characters(TokenizerTrainer):
    def train(self, texts):
        return CharacterTrainer(min_frequency=1).train(texts)


class Sizeless(Readout):
    def forward(self, hidden, context, token):
        return hidden


class Pairs(Corpus):
    def __init__(self) -> None:
        self.tokenizer = WordTrainer(split="whitespace", min_frequency=1)

    def load(self):
        rows = [{"source": f"a{i % 7} b{i % 5}", "target": f"b{i % 5} a{i % 7}"} for i in range(64)]
        whole = datasets.Dataset.from_list(rows)
        return {split: whole for split in ("train", "validation", "test")}


class Bare(Pairs):
    def __init__(self) -> None:
        pass


class Labelled(SentenceCorpus):
    def __init__(self, *, rows: int) -> None:
        self.rows = rows
        self.tokenizer = WordTrainer(split="whitespace", min_frequency=1)

    def load(self):
        labels = ("no", "yes")
        rows = [{"text": f"a{i % 7} b{i % 2}", "label": labels[i % 2]} for i in range(self.rows)]
        whole = datasets.Dataset.from_list(rows)
        return {split: whole for split in ("train", "validation", "test")}
"""
WITHOUT_DATA = tuple(choice for choice in TINY if not choice.startswith("data"))
NOTING = "+callbacks.noting._target_=own_parts.Noting"


@pytest.fixture(autouse=True)
def own_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (folder / "own_parts.py").write_text(OWN)
    monkeypatch.syspath_prepend(folder)
    yield
    sys.modules.pop("own_parts", None)


def choice(folder: Path, group: str, target: str, **settings: Any) -> tuple[str, ...]:
    """The first words of a command that chooses the user's own class for a group.

    The choice is a file in a folder of configs.
    """
    path = folder / "conf" / group / "own.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"_target_": f"own_parts.{target}", **settings}))
    return "--config-dir", str(folder / "conf"), f"{group}=own"


def test_callback_with_keyword_only_parameters_runs(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    alone = (*tiny, "chain=false", NOTING)
    succeeded(
        command("train.py", *alone, "+callbacks.noting.every=3", "+callbacks.noting.colour=red")
    )
    assert (folder / "noted.txt").read_text() == "3 {'colour': 'red'}"
    refused(
        command("train.py", *alone, "+callbacks.noting.every=x"),
        "callbacks.noting.every must be a whole number",
    )


def test_logger_whose_annotation_does_not_resolve_logs(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    node = ("+loggers.own._target_=own_parts.RunLogger", "+loggers.own.save_dir=logs")
    succeeded(command("train.py", *tiny, "chain=false", *node))
    assert list(folder.glob("logs/**/metrics.csv"))


class FakeRun:
    """Of wandb and of comet_ml, as far as Lightning's loggers need it."""

    id = name = key = project_name = "fake"

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.metrics: set[str] = set()

    def log(self, metrics: dict[str, Any], **others: Any) -> None:
        self.metrics |= metrics.keys()

    def __getattr__(self, name: str) -> Any:
        if name == "__internal_api__log_metrics__":
            return self.log
        return lambda *arguments, **named: None


def fake_module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)


def test_wandb_logger_is_given_its_settings_and_logs(
    command: Command, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[FakeRun] = []

    def init(**given: Any) -> FakeRun:
        runs.append(FakeRun(given))
        return runs[-1]

    monkeypatch.setattr("pytorch_lightning.loggers.wandb._WANDB_AVAILABLE", True)
    fake_module(monkeypatch, "wandb", run=None, init=init)
    fake_module(monkeypatch, "wandb.sdk")
    fake_module(monkeypatch, "wandb.sdk.lib", RunDisabled=type("RunDisabled", (), {}))
    fake_module(monkeypatch, "wandb.wandb_run", Run=type("Run", (), {}))
    node = (
        "+loggers.w._target_=pytorch_lightning.loggers.WandbLogger",
        "+loggers.w.project=p",
        "+loggers.w.tags=[a]",
    )
    succeeded(command("train.py", *tiny, "chain=false", *node))
    (run,) = runs
    assert (run.given["project"], run.given["tags"]) == ("p", ["a"])
    assert "validation/free_running/bleu" in run.metrics


def test_comet_logger_is_given_its_settings_and_logs(
    command: Command, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[FakeRun] = []

    def start(**given: Any) -> FakeRun:
        runs.append(FakeRun(given))
        return runs[-1]

    monkeypatch.setattr("pytorch_lightning.loggers.comet._COMET_AVAILABLE", True)
    fake_module(monkeypatch, "comet_ml", ExperimentConfig=dict, start=start)
    monkeypatch.setenv("COMET_DISABLE_AUTO_LOGGING", "1")  # Lightning sets it too
    node = (
        "+loggers.c._target_=pytorch_lightning.loggers.CometLogger",
        "+loggers.c.project=p",
        "+loggers.c.tags=[a]",
    )
    succeeded(command("train.py", *tiny, "chain=false", *node))
    assert (runs[-1].given["project"], runs[-1].given["experiment_config"]) == (
        "p",
        {"tags": ["a"]},
    )
    assert "validation/free_running/bleu" in runs[-1].metrics


def test_logger_of_a_missing_package_is_refused_by_its_name(
    command: Command, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pytorch_lightning.loggers.wandb._WANDB_AVAILABLE", RequirementCache("wandb>=100000")
    )
    monkeypatch.setattr(
        "pytorch_lightning.loggers.comet._COMET_AVAILABLE", RequirementCache("comet-ml>=100000")
    )
    nodes = [
        f"+loggers.{name}._target_=pytorch_lightning.loggers.{name}Logger"
        for name in ("Wandb", "Comet")
    ]
    ended = command("train.py", *tiny, *nodes)
    for name, package in (("Wandb", "wandb"), ("Comet", "comet-ml")):
        refused(
            ended,
            f"loggers.{name}: a package is missing, install it with pip",
            f"'{package}>=100000' not met",
        )


def test_wrong_value_that_lightning_finds_is_refused(
    command: Command, tiny: tuple[str, ...]
) -> None:
    node = (
        "+callbacks.best._target_=pytorch_lightning.callbacks.ModelCheckpoint",
        "+callbacks.best.save_top_k=-2",
    )
    refused(command("train.py", *tiny, *node), "callbacks.best: Invalid value for save_top_k=-2")


def test_score_with_a_keyword_only_setting_trains_and_its_model_loads(
    command: Command, folder: Path
) -> None:
    own = choice(folder, "model/attention", "Euclidean", temperature=2.0)
    tiny = (*own, *ANY_ATTENTION, "tracking=none")
    succeeded(command("train.py", *tiny))
    (model,) = folder.glob("runs/points/*/model")
    assert attnlab.load(model, allow=("own_parts",)) is not None
    refused(
        command("train.py", *tiny, "model.attention.temperature=x"),
        "model.attention.temperature must be a number",
    )
    refused(
        command("train.py", *tiny, "+model.attention.key_size=3"),
        "model.attention.key_size is not a setting",
    )
    refused(
        command("train.py", *tiny, "model/history=coverage"),
        "history Coverage needs the width of the projected keys",
        "projected_key_size",
    )


def test_parts_with_nothing_optional_train(
    command: Command, folder: Path, tiny: tuple[str, ...]
) -> None:
    """No more run-time arguments, attributes and bases than a part needs."""
    groups = {
        "model/scope": "All",
        "model/bridge": "Zero",
        "model/normaliser": "Soft",
        "data/tokenizer": "Characters",
        "training/teacher_forcing": "Half",
    }
    chosen = [choice(folder, group, target)[-1] for group, target in groups.items()]
    settings = {"_partial_": True, "rate": 0.1, "momentum": 0.5}
    optimizer = choice(folder, "training/optimizer", "Descent", **settings)
    succeeded(command("train.py", *optimizer, *chosen, *tiny))
    refused(
        command("train.py", *optimizer, *chosen, *tiny, "training.optimizer.rate=x"),
        "training.optimizer.rate must be a number, got 'x'",
    )
    refused(
        command("train.py", *optimizer, *chosen, *tiny, "training.optimizer.momentum=-1"),
        "training.optimizer: Invalid momentum value: -1",
    )


def test_part_without_an_attribute_of_its_seam_is_refused(command: Command, folder: Path) -> None:
    own = choice(folder, "model/readout", "Sizeless")
    words = [word for word in TINY if not word.startswith("model.readout")]
    refused(
        command("train.py", *own, *words, "tracking=none"),
        "model.readout: Sizeless lacks size, which every Readout sets in its constructor",
    )


def test_corpus_with_a_tokenizer_alone_trains_to_its_report(
    command: Command, folder: Path, database: Path
) -> None:
    """That of the docs."""
    page = (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8")
    (module, config) = re.search(
        r"```python\n(import datasets.*?)```.*?```yaml\n(.*?)```", page, flags=re.DOTALL
    ).groups()
    (folder / "my_corpus.py").write_text(module)
    (folder / "my_conf" / "data").mkdir(parents=True)
    (folder / "my_conf" / "data" / "sums.yaml").write_text(config)

    ended = succeeded(
        command(
            "train.py",
            "--config-dir",
            str(folder / "my_conf"),
            "data=sums",
            "training.monitor=exact_match",
            *WITHOUT_DATA,
        )
    )
    assert list(folder.glob("runs/**/report/index.html"))
    assert " · sums · seed 1: checking" in ended.out


def test_corpus_without_a_tokenizer_is_refused_before_anything_runs(
    command: Command, folder: Path
) -> None:
    own = choice(folder, "data", "Bare")
    refused(
        command("train.py", *own, *WITHOUT_DATA, "tracking=none"),
        "data: Bare lacks tokenizer, which every Corpus",
    )
    assert not (folder / "runs" / "data").exists()


def test_labelled_corpus_of_ones_own_trains_a_classifier(command: Command, folder: Path) -> None:
    own = choice(folder, "data", "Labelled", rows=64)
    sizes = ("model.encoder.hidden_size=8", "training.max_steps=4", "training.validate_every=4")
    ended = succeeded(command("train.py", *own, "task=classification", "tracking=none", *sizes))
    assert "accuracy" in ended.out
