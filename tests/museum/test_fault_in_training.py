"""Faults of training and of measuring: the loss, the validation, the evaluation; exact resume."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from small_experiments import SMALL, overrides_of

import attnlab
from attnlab.batch import EOS
from attnlab.data.prepared import PreparedData
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.experiment.evaluation import evaluate_model_folder
from attnlab.experiment.preparation import prepare
from attnlab.experiment.run import open_run, set_up
from attnlab.experiment.training import make_batches, make_module, make_trainer
from attnlab.explorer.supported import unsupported
from attnlab.files import read_own_record
from attnlab.model.model_folder import load_model
from attnlab.tasks.task import Experiment
from attnlab.tasks.translation.step_numbers import step_numbers
from attnlab.training.spool import history


class StoppedError(Exception):
    pass


class StopBefore(pl.Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_start(self, trainer: pl.Trainer, *arguments: Any) -> None:
        if trainer.global_step == self.step:
            raise StoppedError


@pytest.fixture
def experiment(tmp_path: Path) -> Callable[..., Experiment]:
    def build(fault: str, *others: str, runs: str = "runs") -> Experiment:
        return compose([*overrides_of(fault, *others), f"paths.runs={tmp_path / runs}"])

    return build


def trained(experiment: Experiment, stop_before: int | None = None) -> tuple[Path, Any]:
    """The folder of the run, and the LightningModule at the end of the training."""
    set_up(experiment)
    data = prepare(experiment)
    with open_run(experiment, data) as run:
        module = make_module(experiment, data)
        batches = make_batches(experiment, data)
        watch = [] if stop_before is None else [StopBefore(stop_before)]
        trainer = make_trainer(experiment, data, batches, run.folder, watch=watch)
        trainer.fit(module, batches, ckpt_path=run.last_checkpoint)
        run.keep(trainer)
        run.publish()
        return run.folder, module


def data_of(experiment: Experiment) -> PreparedData:
    data = prepare(experiment)
    assert isinstance(data, PreparedData)
    return data


def first_gradients(experiment: Experiment) -> tuple[dict[str, torch.Tensor], float]:
    """The gradients of the first batch, and its share of real target tokens."""
    data = data_of(experiment)
    module: Any = make_module(experiment, data).double()
    batch = next(iter(make_batches(experiment, data).train_dataloader()))
    module.trainer = FirstStep()
    loss = module.training_step(batch, 0)
    loss.backward()
    gradients = {name: each.grad for name, each in module.model.named_parameters()}
    return gradients, batch.num_target_tokens / batch.target_mask.numel()


class FirstStep:
    """What a training step asks of its trainer."""

    global_step, max_steps, is_last_batch, world_size, training = 0, 9, False, 1, True
    strategy = None


def test_loss_over_pads_has_the_gradient_of_a_mean_over_all_places(
    experiment: Callable[..., Experiment],
) -> None:
    others = ("training.batching.bucketed=false", "data.min_length=1", "training.log_every=1000")
    right, share = first_gradients(experiment("none", *others))
    faulty, same_share = first_gradients(experiment("loss_over_pads", *others))
    assert share == same_share < 0.9
    for name, gradient in right.items():
        np.testing.assert_allclose(faulty[name], share * gradient, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("fault", ["loss_over_pads", "score_not_learnt"])
def test_logged_loss_stays_that_of_a_real_token(
    experiment: Callable[..., Experiment], fault: str
) -> None:
    folder, _ = trained(experiment(fault, "training.log_every=1"))
    right, _ = trained(experiment("none", "training.log_every=1"))

    def first_loss(folder: Path) -> float:
        rows = history(folder / "run" / "metrics.jsonl")
        return next(row.value for row in rows if row.name == "train/token_nll")

    assert first_loss(folder) == pytest.approx(first_loss(right), rel=1e-6)


def test_score_not_learnt_stays_as_it_was_drawn(experiment: Callable[..., Experiment]) -> None:
    faulty = experiment("score_not_learnt", "training/optimizer=adamw")
    drawn: Any = make_module(faulty, data_of(faulty))
    before = {name: each.clone() for name, each in drawn.model.state_dict().items()}
    _, module = trained(faulty)
    changed = {
        name
        for name, value in module.model.state_dict().items()
        if not torch.equal(value, before[name])
    }
    of_score = {name for name in before if name.startswith("decoder.attention.score.")}
    assert of_score
    assert changed == before.keys() - of_score


def forced_by_hand(model: Any, data: PreparedData, name: str) -> list[str]:
    """What a model writes after each reference, token by token."""
    split = data.split(name)
    found = []
    for row in range(len(split)):
        batch = split.batch(np.array([row]), model.padding)
        written: list[int] = []
        with torch.no_grad():
            memory, state = model.encode(batch.source, batch.source_mask)
            for token in batch.target_input[0]:
                logits, state, _ = model.step(token.view(1), state, memory)
                logits[:, [0, 2]] = -torch.inf
                written.append(int(logits.argmax()))
        end = written.index(EOS) if EOS in written else len(written)
        found.append(data.target_tokenizer.decode(written[:end]))
    return found


def test_teacher_forcing_in_validation_measures_what_follows_the_reference(
    experiment: Callable[..., Experiment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = experiment("teacher_forcing_in_validation", "training.max_steps=30")
    folder, module = trained(faulty)
    data = data_of(faulty)
    rows = list(range(len(data.split("validation"))))

    # In a validation
    module.model.eval()
    assert module.decode(rows, [[] for _ in rows]) == forced_by_hand(
        module.model, data, "validation"
    )

    # In the evaluation of a model folder, by a command that does not name the fault
    command = [
        *SMALL, f"paths.runs={tmp_path / 'runs'}", f"paths.model={folder / 'model'}",
        f"paths.data={data.folder}", f"paths.evaluation={tmp_path / 'evaluation'}",
    ]  # fmt: skip
    monkeypatch.setattr("attnlab.experiment.evaluation.output_folder", lambda: tmp_path / "out")
    into = evaluate_model_folder(compose(command))
    sentences = [json.loads(line) for line in (into / "hypotheses.jsonl").open()]
    model = load_model(folder / "model")
    assert [each["hypothesis"] for each in sentences] == forced_by_hand(model, data, "test")
    exact = sum(each["exact"] for each in sentences) / len(sentences)
    metrics = read_own_record(into / "metrics.json", dict[str, Any], "")
    assert metrics["exact_match"] == pytest.approx(exact)


def test_fault_of_measuring_alone_leaves_the_weights_to_the_bit(
    experiment: Callable[..., Experiment],
) -> None:
    _, right = trained(experiment("none"))
    for fault in ("teacher_forcing_in_validation", "free_running_perplexity"):
        _, faulty = trained(experiment(fault))
        for name, value in right.model.state_dict().items():
            assert torch.equal(value, faulty.model.state_dict()[name]), (fault, name)


@pytest.mark.parametrize(
    "fault",
    ["loss_over_pads", "softmax_over_batch", "state_not_passed", "teacher_forcing_in_validation"],
)
def test_stopped_training_with_a_fault_resumes_to_the_bit(
    experiment: Callable[..., Experiment], fault: str
) -> None:
    others = ("training.max_steps=6", "model.encoder.dropout=0.2")
    whole, of_whole = trained(experiment(fault, *others, runs="whole"))
    with pytest.raises(StoppedError):
        trained(experiment(fault, *others), stop_before=5)
    resumed, of_resumed = trained(experiment(fault, *others))

    assert resumed.name == whole.name
    for name, value in of_whole.model.state_dict().items():
        assert torch.equal(value, of_resumed.model.state_dict()[name]), name
    spools = (folder / "run" / "metrics.jsonl" for folder in (whole, resumed))
    of_one, of_other = (list(history(spool)) for spool in spools)
    assert of_one == of_other


def test_loaded_model_warns_of_its_fault_and_gives_no_formulas(
    experiment: Callable[..., Experiment], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = trained(experiment("relu_for_tanh"))
    capsys.readouterr()
    translator: Any = attnlab.load(folder / "model")
    warned = capsys.readouterr().err
    assert warned.startswith("warning: the model in ")
    assert "was trained with fault=relu_for_tanh, a mistake" in warned
    assert translator("a b").tokens

    with pytest.raises(ExperimentError, match=r"a fault of docs/museum.md"):
        step_numbers(translator, "a b", [5])
    problems = "\n".join(unsupported(translator))
    assert "attnlab.faults.faulty_model.FaultySeq2Seq" in problems

    right, _ = trained(experiment("none"))
    capsys.readouterr()
    attnlab.load(right / "model")
    assert capsys.readouterr().err == ""


def test_right_model_is_not_trained_further_with_a_fault_but_lends_its_weights(
    experiment: Callable[..., Experiment],
) -> None:
    folder, _ = trained(experiment("none"))
    with pytest.raises(ExperimentError, match=r"training.continue_from: .* differs in model"):
        trained(experiment("relu_for_tanh", f"training.continue_from={folder.name}"))
    lent = experiment("relu_for_tanh", f"training.initial_weights={folder / 'model'}")
    drawn: Any = make_module(lent, data_of(lent))
    weights = load_model(folder / "model").state_dict()
    assert all(torch.equal(weights[name], each) for name, each in drawn.model.state_dict().items())
