"""Classifiers in real trainings of a few steps: results, logged metrics and repeatability."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.corpus import SentenceCleaning
from attnlab.data.datamodule import SeqDataModule
from attnlab.data.hub import LabelledCorpus
from attnlab.data.prepare import prepare
from attnlab.data.prepared import LabelledData
from attnlab.data.row_kinds import Sentences
from attnlab.data.trainers import WordTrainer
from attnlab.experiment.composition import compose
from attnlab.model.normalisers.reinforce import Reinforce
from attnlab.model.outputs.likelihood import each_smoothed_nll
from attnlab.tasks.classification.module import ClassifierModule
from attnlab.tasks.task import Experiment
from attnlab.training.spool import MetricSpool
from attnlab.training.trainer import build_trainer


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LabelledData:
    """Sentences of random words and one word, at any position, that determines the class."""
    random = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("labelled")
    for split, size in (("train", 120), ("validation", 30), ("test", 30)):
        lines = []
        for i in range(size):
            words = [f"w{n}" for n in random.integers(8, size=random.integers(1, 8))]
            words.insert(int(random.integers(len(words) + 1)), f"clue{i % request.param}")
            lines.append(
                json.dumps({"text": " ".join(words), "label": f"class {i % request.param}"}) + "\n"
            )
        (folder / f"{split}.jsonl").write_text("".join(lines))
    corpus = LabelledCorpus(
        None,
        str(folder),
        None,
        None,
        {name: name for name in ("train", "validation", "test")},
        1,
        None,
        None,
        None,
        None,
        "text",
        "label",
        None,
        SentenceCleaning(),
        WordTrainer(min_frequency=1),
    )
    prepare(corpus, Sentences, folder / "data")
    return LabelledData(folder / "data")


@dataclass
class Trained:
    module: ClassifierModule
    trainer: pl.Trainer
    folder: Path

    def values(self, name: str) -> list[float]:
        records, _ = MetricSpool(self.folder / "metrics.jsonl").read()
        return [record.metrics[name] for record in records if name in record.metrics]


def composed(*overrides: str) -> Experiment:
    """Twelve steps of twenty sentences, validated every four."""
    data = ["task=classification", "data.path=none", "data.label_names=[a,b]"]
    model = ["model/encoder=lstm", "model.encoder.embedding_size=8", "model.encoder.hidden_size=8"]
    training = [
        "training.max_steps=12",
        "training.validate_every=4",
        "training.log_every=1",
        "training.optimizer.lr=0.02",
        "training.batching.size=20",
    ]
    return compose([*data, *model, *training, *overrides])


@pytest.fixture(scope="module")
def usual() -> Experiment:
    return composed()


@pytest.fixture(scope="module")
def drawing() -> Experiment:
    """Its attention draws the one token that it sees."""
    return composed("model/normaliser=reinforce", "model.dropout=0")


@pytest.fixture
def train(data: LabelledData, usual: Experiment, tmp_path: Path) -> Callable[..., Trained]:
    count = 0

    def run(seed: int = 1, experiment: Experiment = usual, **changed: Any) -> Trained:
        nonlocal count
        count += 1
        folder = tmp_path / f"run{count}"
        settings = replace(experiment.training, **changed)

        pl.seed_everything(seed, workers=True, verbose=False)
        sizes = {"source_vocabulary_size": data.tokenizer.size, "num_classes": len(data.labels)}
        model = experiment.model(**sizes, padding=Padding())
        module = ClassifierModule(model, settings, len(data.labels))
        batches = SeqDataModule(
            data, settings.batching, Padding(), seed=seed, accumulate=settings.accumulate
        )
        trainer = build_trainer(
            settings,
            experiment.hardware,
            epochs=batches.epoch_lengths(),
            checkpoints=folder / "checkpoints",
            spool=MetricSpool(folder / "metrics.jsonl"),
        )
        trainer.fit(module, batches)
        return Trained(module, trainer, folder)

    return run


def test_classifier_learns_the_words_that_determine_the_class(
    train: Callable[..., Trained],
) -> None:
    run = train(max_steps=60, validate_every=20)
    assert run.values("validation/accuracy")[-1] >= 0.95
    assert run.values("validation/f1")[-1] >= 0.95
    assert run.values("validation/nll")[-1] < run.values("validation/nll")[0]


def test_classifier_validation_equals_its_formulas(
    train: Callable[..., Trained], data: LabelledData
) -> None:
    run = train()
    module = run.module.eval()
    split = data.split("validation")
    batch = split.batch(np.arange(len(split)), Padding())
    with torch.no_grad():
        log_probabilities = module.model(batch.source, batch.source_mask).log_probabilities.double()
    labels, predictions = batch.labels.numpy(), log_probabilities.argmax(1).numpy()
    assert run.values("validation/accuracy")[-1] == pytest.approx((labels == predictions).mean())
    of_classes = []
    for each in range(len(data.labels)):
        hits = ((labels == each) & (predictions == each)).sum()
        of_classes.append(2 * hits / ((labels == each).sum() + (predictions == each).sum()))
    assert run.values("validation/f1")[-1] == pytest.approx(np.mean(of_classes))
    nll = -log_probabilities[torch.arange(len(split)), batch.labels].mean().item()
    assert run.values("validation/nll")[-1] == pytest.approx(nll, rel=1e-5)
    counts = np.zeros_like(module.confusions.numpy())
    np.add.at(counts, (labels, predictions), 1)
    assert module.confusions.tolist() == counts.tolist()


def test_classifier_label_smoothing_changes_the_loss_but_not_the_nll(
    train: Callable[..., Trained],
) -> None:
    still = {"optimizer": Part(torch.optim.SGD, lr=1e-30), "max_steps": 3}
    plain, smoothed = train(**still), train(**still, label_smoothing=0.2)
    assert plain.values("train/nll") == smoothed.values("train/nll")
    assert plain.values("validation/nll") == smoothed.values("validation/nll")
    assert plain.values("train/loss") == []
    assert smoothed.values("train/loss") != smoothed.values("train/nll")


def test_classifier_training_with_the_same_seed_gives_the_same_bits(
    train: Callable[..., Trained],
) -> None:
    first, second, other = train(seed=3), train(seed=3), train(seed=4)
    for name in ("train/nll", "validation/nll", "train/gradient_norm"):
        assert first.values(name) == second.values(name)
    assert first.values("train/nll") != other.values("train/nll")


def test_classifier_learns_by_the_rewards_of_its_draws(
    train: Callable[..., Trained], drawing: Experiment
) -> None:
    run = train(experiment=drawing, max_steps=60, validate_every=20)
    assert run.values("validation/nll")[-1] < run.values("validation/nll")[0]
    # Half or a third of the sentences are guessed.
    assert run.values("validation/accuracy")[-1] >= 0.9
    names = ("train/loss", "train/nll", "train/draw_entropy")
    for loss, nll, entropy in zip(*(run.values(name) for name in names), strict=True):
        assert loss == pytest.approx(nll - 0.01 * entropy, abs=1e-5)
    # b is the mean log-likelihood of a sentence in the last steps.
    likelihoods = [-nll for nll in run.values("train/nll")]
    expected = likelihoods[0]
    for step, each in enumerate(likelihoods[1:], start=2):
        expected += (each - expected) * 0.1 / (1 - 0.9**step)
    assert run.module.reinforcement.baseline.item() == pytest.approx(expected, abs=1e-4)


def test_mean_of_a_classifiers_estimate_is_the_gradient_of_its_expected_loss(
    train: Callable[..., Trained], data: LabelledData, drawing: Experiment, monkeypatch: Any
) -> None:
    """Over all tokens of a sentence, each as often as it is drawn; no draw is left to chance."""
    run = train(experiment=drawing, max_steps=4)
    model, learned = run.module.model.train().double(), run.module.reinforcement.double()
    learned.entropy_weight = 0.0
    batch = data.split("train").batch(np.array([0]), Padding())
    once = torch.ones(1, 1, dtype=torch.bool)
    expected, estimate = torch.zeros(()), torch.zeros(())
    for place in range(batch.source.shape[1]):

        def given(self: Any, scores: torch.Tensor, place: int = place) -> torch.Tensor:
            return torch.nn.functional.one_hot(
                torch.full(scores.shape[:-1], place), scores.shape[-1]
            ).to(scores.dtype)

        monkeypatch.setattr(Reinforce, "forward", given)
        found = model(batch.source, batch.source_mask)
        likely = found.drawn.log_probability.exp().sum()
        loss = each_smoothed_nll(found.log_probabilities, batch.labels, 0.0).loss
        term = learned(loss.unsqueeze(1), once, found.drawn)
        expected = expected + likely * loss.sum()
        estimate = estimate + likely.detach() * (loss.sum() + term)

    names, parameters = zip(*model.named_parameters(), strict=True)
    exact = torch.autograd.grad(expected, parameters, retain_graph=True)
    mean = torch.autograd.grad(estimate, parameters)
    for name, ours, theirs in zip(names, mean, exact, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12, msg=name)
    of_score = [x for name, x in zip(names, exact, strict=True) if ".score." in name]
    assert of_score
    assert all(x.any() for x in of_score)


def test_classifier_that_draws_learns_from_parts_of_a_batch_as_from_the_whole(
    train: Callable[..., Trained], drawing: Experiment, monkeypatch: Any
) -> None:
    def likeliest(self: Any, scores: torch.Tensor) -> torch.Tensor:
        chosen = torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1])
        return chosen.to(scores.dtype)

    monkeypatch.setattr(Reinforce, "forward", likeliest)
    choices = {"optimizer": Part(torch.optim.SGD, lr=0.5), "gradient_clip": 0.0}
    whole = train(experiment=drawing, **choices)
    parts = train(experiment=drawing, **choices, accumulate=2)
    torch.testing.assert_close(
        parts.module.reinforcement.baseline, whole.module.reinforcement.baseline
    )
    theirs = whole.module.model.state_dict()
    for name, weight in parts.module.model.state_dict().items():
        torch.testing.assert_close(weight, theirs[name], rtol=0, atol=1e-5, msg=name)


def test_classifier_that_draws_is_validated_with_its_averaged_weights(
    train: Callable[..., Trained], drawing: Experiment
) -> None:
    plain = train(experiment=drawing)
    averaged = train(experiment=drawing, average_decay=0.9)
    # The draws and rewards of training are those of the plain weights.
    assert averaged.values("train/loss") == plain.values("train/loss")
    baselines = [run.module.reinforcement.baseline for run in (averaged, plain)]
    assert torch.equal(*baselines)
    assert averaged.values("validation/nll") != plain.values("validation/nll")
