"""A small corpus to copy, and a whole training on it through the project's own trainer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.datamodule import EpochLengths, SeqDataModule
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.sampler import Batching
from attnlab.search.greedy import GreedySearch
from attnlab.tasks.translation.metrics import TextMetrics
from attnlab.tasks.translation.module import Seq2SeqModule
from attnlab.tasks.translation.settings import TranslationTraining
from attnlab.training.hardware import Hardware
from attnlab.training.optimisation import ConstantSchedule
from attnlab.training.processes import supervise_forked
from attnlab.training.settings import Training
from attnlab.training.spool import MetricSpool
from attnlab.training.teacher_forcing import ConstantTeacherForcing
from attnlab.training.trainer import build_trainer


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, copy_corpus) -> PreparedData:
    """48 training pairs of 1 to 6 symbols, 6 for validation, 6 for test."""
    folder = tmp_path_factory.mktemp("prepared") / "data"
    prepare(copy_corpus(), Pairs, folder)
    return PreparedData(folder)


@pytest.fixture
def settings() -> Callable[..., Any]:
    """Twelve steps of sixteen pairs, validated every four."""

    def make(kind: type[Training] = TranslationTraining, **changed: Any) -> Any:
        values: dict[str, Any] = {
            "max_steps": 12,
            "max_epochs": None,
            "max_minutes": None,
            "accumulate": 1,
            "limit_batches": None,
            "initial_weights": None,
            "continue_from": None,
            "batching": Batching("sentences", 16, True, None),
            "optimizer": Part(torch.optim.Adam, lr=0.01, fused=True),
            "schedule": ConstantSchedule(),
            "label_smoothing": 0.0,
            "gradient_clip": 1.0,
            "validate_every": 4,
            "patience": None,
            "log_every": 1,
            "keep_best": 1,
            "average_checkpoints": 1,
            "average_decay": None,
        }
        if kind is TranslationTraining:
            forcing = ConstantTeacherForcing(1.0)
            values |= {
                "teacher_forcing": forcing,
                "validation_search": GreedySearch(10),
                "monitor": "token_nll",
            }
        return kind(**(values | changed))

    return make


@pytest.fixture
def hardware() -> Callable[..., Hardware]:
    def make(**changed: Any) -> Hardware:
        values: dict[str, Any] = {
            "accelerator": "cpu", "devices": 1, "nodes": 1, "strategy": "single", "precision": 32,
            "matmul_precision": "highest", "threads": 1, "workers": 0,
        }  # fmt: skip
        return Hardware(**(values | changed))

    return make


@pytest.fixture(autouse=True)
def hear_ctrl_c() -> Iterator[None]:
    """Behind a shell's `&`, Python ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@dataclass
class Run:
    trainer: pl.Trainer
    module: Seq2SeqModule
    checkpoint: ModelCheckpoint
    batches: SeqDataModule
    folder: Path

    def curve(self, name: str) -> list[tuple[int, float]]:
        """The (step, value) points of a metric."""
        records, _ = MetricSpool(self.folder / "metrics.jsonl").read()
        return [(record.step, record.metrics[name]) for record in records if name in record.metrics]

    def values(self, name: str) -> list[float]:
        return [value for _, value in self.curve(name)]


@pytest.fixture
def train(prepared, settings, hardware, tiny_model, tmp_path) -> Callable[..., Run]:
    """Trains as the pipeline does, and returns the results."""
    count = 0

    def run(
        *,
        seed: int = 1,
        dropout: float = 0.0,
        on: dict[str, Any] | None = None,
        callbacks: Sequence[pl.Callback] = (),
        loaders: tuple[Any, Any] | None = None,
        model: dict[str, Any] | None = None,
        folder: str | None = None,
        resume: bool = False,
        save_every_minutes: float | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
        identity: str = "",
        **changed: Any,
    ) -> Run:
        import torch

        nonlocal count
        count += 1
        place = tmp_path / (folder or f"run{count}")
        chosen, machine = settings(**changed), hardware(**(on or {}))
        pl.seed_everything(seed, workers=True, verbose=False)
        sizes = {
            "source_vocabulary_size": prepared.source_tokenizer.size,
            "target_vocabulary_size": prepared.target_tokenizer.size,
        }
        built = tiny_model(
            seed=seed, dropout=dropout, dtype=torch.float32, **sizes, **(model or {})
        ).train()
        validation = prepared.split("validation")

        def decode(rows: Sequence[int], targets: Sequence[list[int]]) -> list[str]:
            return [prepared.target_tokenizer.decode(target) for target in targets]

        def references(rows: Sequence[int]) -> list[str]:
            return [validation.target_text(row) for row in rows]

        module = Seq2SeqModule(
            built, chosen, TextMetrics("none", ter=False), decode, references, seed
        )
        loading = {"seed": seed, "num_workers": machine.workers, "accumulate": chosen.accumulate}
        batches = SeqDataModule(prepared, chosen.batching, Padding(), **loading)
        epochs = batches.epoch_lengths()
        if loaders:
            epochs = EpochLengths.all_alike(len(loaders[0]))
        saved, spool = place / "checkpoints", MetricSpool(place / "metrics.jsonl")
        trainer = build_trainer(
            chosen,
            machine,
            epochs=epochs,
            checkpoints=saved,
            identity=identity,
            spool=spool,
            callbacks=callbacks,
            save_every_minutes=save_every_minutes,
            options=options,
        )
        # Lightning's own `fit`, which does not raise where a training was interrupted
        fit = partial(pl.Trainer.fit, trainer)
        if loaders:
            fit(module, *loaders)
        else:
            last = saved / "last.ckpt" if resume else None
            with supervise_forked(trainer):
                fit(module, batches, ckpt_path=last, weights_only=True if resume else None)
        return Run(trainer, module, trainer.best_checkpoints, batches, place)

    return run
