"""Attention that is switched on late: what a step, a validation and the best checkpoint see."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from composed_variants import part_of, usual_first
from legal_choices import refusal
from pytorch_lightning.callbacks import LambdaCallback

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.intervention import Intervention
from attnlab.model.outputs.pointer_generator import PointerGenerator
from attnlab.model.outputs.pointer_network import PointerNetwork
from attnlab.search.greedy import GreedySearch
from attnlab.tasks.translation.intervened import Intervened
from attnlab.training.attention_losses.entropy import Entropy
from attnlab.training.attention_schedule import LateAttentionSchedule, schedule_problems
from attnlab.training.checkpoints import best_checkpoints, checkpoint_step
from attnlab.training.loss import summed_nll
from attnlab.training.optimisation import PlateauSchedule

TOKEN_NLL = "validation/teacher_forced/token_nll"
STANDSTILL = {"optimizer": Part(torch.optim.SGD, lr=1e-30), "gradient_clip": 0.0}
MEANWHILE = {"uniform": Intervention("uniform"), "none": Intervention(hide="all")}
# Whose weights only the attention reads.
OF_THE_SCORE = "decoder.attention.score."


def late(from_step: int, meanwhile: str = "uniform") -> LateAttentionSchedule:
    return LateAttentionSchedule(from_step, meanwhile)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_attention_is_off_until_its_step(meanwhile):
    schedule = late(3, meanwhile)
    off = MEANWHILE[meanwhile]
    assert [schedule.at_step(step) for step in range(5)] == [off, off, off, None, None]
    # A validation sees what the step before it saw.
    assert [schedule.after_steps(steps) for steps in range(6)] == [off, off, off, off, None, None]


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend"])
def test_decoder_without_attention_gets_the_mean_or_zeros(decoder, tiny_model, pairs):
    padding = Padding("pre", "post")
    model = tiny_model(decoder=decoder, padding=padding).eval()
    batch = make_batch(*pairs(), padding)
    for change in MEANWHILE.values():
        memory, state = model.encode(batch.source, batch.source_mask, change)
        token = model.decoder.body.known_tokens(
            model.decoder.body.embed(batch.target_input[:, :1].t())
        )[0]
        output, _ = model.decoder.step(token, state, memory)
        expected = torch.zeros_like(output.context)
        if change.kind == "uniform":
            outputs = model.encoder(batch.source, batch.source_mask).outputs
            for row, mask in enumerate(batch.source_mask):
                expected[row] = outputs[row][mask].mean(0)
        torch.testing.assert_close(output.context, expected)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_score_is_learned_from_its_step_on(meanwhile, train):
    weights: list[dict[str, torch.Tensor]] = []

    def note(trainer, module, *args):
        named = module.model.named_parameters()
        weights.append({n: p.detach().clone() for n, p in named if n.startswith(OF_THE_SCORE)})

    train(
        max_steps=6,
        validate_every=6,
        attention_schedule=late(4, meanwhile),
        optimizer=Part(torch.optim.AdamW, lr=0.01, weight_decay=0.5),
        callbacks=[LambdaCallback(on_train_batch_start=note)],
    )
    assert weights[0]
    for name, first in weights[0].items():
        # Of the steps 0 to 4, the first four change nothing; nor does their weight decay.
        assert torch.equal(weights[4][name], first), name
        assert not torch.equal(weights[5][name], first), name


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_validation_measures_the_model_of_the_last_step(meanwhile, train, prepared):
    chosen = {**STANDSTILL, "max_steps": 6, "validate_every": 2, "log_every": 1}
    run = train(**chosen, attention_schedule=late(4, meanwhile), model={"scale": 3.0})
    model = run.module.model.eval()
    split = prepared.split("validation")
    batch = split.batch(np.arange(len(split)), model.padding)
    off = MEANWHILE[meanwhile]
    expected = []
    with torch.no_grad():
        for change in (off, off, None):
            unrolled = model(batch, intervention=change)
            nll = summed_nll(model.output, unrolled, batch).item() / batch.num_target_tokens
            expected.append(nll)
    assert abs(expected[0] - expected[2]) > 1e-3
    assert run.values(TOKEN_NLL) == pytest.approx(expected, rel=1e-4)
    assert run.values("train/attention_is_on") == [0, 0, 0, 0, 1, 1]


def test_validation_searches_with_the_model_of_the_last_step(train):
    searched: list[Intervention | None] = []

    class Noted(GreedySearch):
        def __call__(self, model, *args, **kwargs):
            searched.append(model.intervention if isinstance(model, Intervened) else None)
            return super().__call__(model, *args, **kwargs)

    train(max_steps=6, validate_every=3, attention_schedule=late(3), validation_search=Noted(10))
    assert searched == [Intervention("uniform"), None]


def test_validations_without_attention_choose_no_checkpoint(train):
    """At this rate each validation is worse than the one before."""
    worse = {"optimizer": Part(torch.optim.SGD, lr=0.5, maximize=True), "monitor": "token_nll"}
    chosen = {**worse, "max_steps": 8, "validate_every": 2, "keep_best": 4}
    always = train(**chosen)
    assert checkpoint_step(best_checkpoints(always.checkpoint, 1)[0]) == 2
    run = train(**chosen, attention_schedule=late(4))
    assert run.values(TOKEN_NLL)[0] < run.values(TOKEN_NLL)[2]
    assert [checkpoint_step(path) for path in best_checkpoints(run.checkpoint, 4)] == [6, 8]


def test_validations_without_attention_end_no_training(train):
    worse = {
        "optimizer": Part(torch.optim.SGD, lr=0.5, maximize=True),
        "monitor": "token_nll",
        "patience": 1,
    }
    chosen = {**worse, "max_steps": 12, "validate_every": 2}
    assert train(**chosen).trainer.global_step == 4
    # The validation after 8 steps is the first that counts, the one after 10 is worse.
    assert train(**chosen, attention_schedule=late(6)).trainer.global_step == 10


def test_validations_without_attention_lower_no_rate(train):
    """At this rate no sentence is ever copied."""
    slow = Part(torch.optim.SGD, lr=0.001)
    chosen = {"optimizer": slow, "max_steps": 8, "validate_every": 2, "monitor": "exact_match"}
    chosen["schedule"] = PlateauSchedule(factor=0.5, patience=0)
    always = train(**chosen).values("train/learning_rate")
    assert [rate / always[0] for rate in always] == [1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25]
    run = train(**chosen, attention_schedule=late(2))
    rates = run.values("train/learning_rate")
    assert [rate / rates[0] for rate in rates] == [1, 1, 1, 1, 1, 1, 0.5, 0.5]


def test_loss_on_weights_begins_with_the_attention(train):
    run = train(
        max_steps=4, validate_every=4, attention_schedule=late(2), attention_loss=Entropy(1.0)
    )
    assert [step for step, _ in run.curve("train/attention_entropy_loss")] == [3, 4]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"max_steps": 4}, r"attention_schedule\.from_step must be below max_steps"),
        ({"max_minutes": 1.0}, "max_minutes may end the training before the attention is on"),
    ],
)
def test_training_that_may_end_without_attention_is_refused(changed, words, settings):
    with pytest.raises(ValueError, match=words):
        settings(**changed, attention_schedule=late(4))


def test_epochs_that_end_before_the_attention_is_on_are_refused(train):
    with pytest.raises(ExperimentError, match="training ends after 3 steps, before the attention"):
        train(max_steps=None, max_epochs=1, attention_schedule=late(3))


def test_average_counts_only_validations_with_attention(train):
    chosen = {"max_steps": 12, "validate_every": 4, "keep_best": 3}
    with pytest.raises(
        ExperimentError, match=r"validated 2 time\(s\), every 4, those up to step 4"
    ):
        train(**chosen, average_checkpoints=3, attention_schedule=late(4))


def test_training_that_a_callback_ends_without_attention_has_no_model(train):
    def stop(trainer, *args):
        trainer.should_stop = True

    run = train(attention_schedule=late(9), callbacks=[LambdaCallback(on_validation_end=stop)])
    assert run.trainer.global_step == 4
    with pytest.raises(ExperimentError, match="ended before its first validation with the whole"):
        best_checkpoints(run.checkpoint, 1)


def test_model_needs_a_schedule_to_have_a_problem_with_it():
    without = {"attention": None}
    assert schedule_problems(None, without) == []
    (problem,) = schedule_problems(late(1), without)
    assert "choose training/attention_schedule=always or a model/attention" in problem


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_pointer_network_would_learn_nothing_without_attention(meanwhile):
    model = {"attention": Part(BahdanauScore), "output": Part(PointerNetwork)}
    (problem,) = schedule_problems(late(3, meanwhile), model)
    assert "leaves nothing to learn while the attention is off" in problem
    assert "choose training/attention_schedule=always or model/output=pointer_gen" in problem
    copies = {**model, "output": Part(PointerGenerator)}
    assert (schedule_problems(late(3, meanwhile), copies) == []) == (meanwhile == "uniform")


@pytest.mark.parametrize("scope", ["global", "local_m", "local_p", "local_p_renormalised"])
@pytest.mark.parametrize("history", ["none", "forward", "monotonic"])
@pytest.mark.parametrize("normaliser", usual_first("normaliser"))
def test_uniform_weights_in_place_of_uniform_weights_are_refused(
    normaliser, history, scope, tiny_model, pairs
):
    """Just where an attention that is off has the weights of one that is on."""
    choices = {"normaliser": normaliser, "history": history, "scope": scope, "attention": "uniform"}
    if refusal(choices) is not None:
        pytest.skip("refused by itself")
    settings = {name: part_of(name, choice) for name, choice in choices.items() if name != "scope"}
    window = {"renormalise": True} if scope.endswith("_renormalised") else {}
    settings["scope"] = part_of("scope", scope.removesuffix("_renormalised"), **window)
    problems = schedule_problems(late(3), settings)

    model, batch = tiny_model(**choices), make_batch(*pairs((5, 3), (4, 2)), Padding())
    on = model(batch).attention_weights
    off = model(batch, intervention=Intervention("uniform")).attention_weights
    assert bool(problems) == torch.allclose(on, off, rtol=0, atol=1e-9)
    assert all("so that the schedule changes nothing; choose" in problem for problem in problems)
    assert schedule_problems(late(3, "none"), settings) == []
