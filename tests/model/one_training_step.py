"""One training step by the choices of a row, and what it must do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from composed_variants import FOLLOWS_ALIGNMENT
from legal_choices import HARD, MAKES_ITS_WEIGHTS, USUAL, Row
from torch.nn.functional import cross_entropy

from attnlab.batch import Batch
from attnlab.config.part import Part
from attnlab.model.fast import speed_up
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.unrolled import Unrolled
from attnlab.training import teacher_forcing
from attnlab.training.loss import summed_loss, token_losses
from attnlab.training.reinforcement import Reinforcement
from attnlab.training.teacher_forcing import TeacherForcing, toss

STEP = 10  # the falling schedules are near a half here
SEED = 1  # of the coins: whatever the coin, some are for a guess (see `test_pairwise`)
FORCINGS: dict[str, Callable[..., TeacherForcing]] = {
    "constant_1": partial(teacher_forcing.ConstantTeacherForcing, ratio=1.0),
    "constant_half": partial(teacher_forcing.ConstantTeacherForcing, ratio=0.5),
    "linear": partial(teacher_forcing.LinearTeacherForcing, start=1.0, end=0.0, slope=0.05),
    "exponential": partial(teacher_forcing.ExponentialTeacherForcing, k=0.93),
    "inverse_sigmoid": partial(teacher_forcing.InverseSigmoidTeacherForcing, k=5.0),
}
# Steps so small that the gradient predicts the change of the loss, and that no likeliest token, fed
# as a guess,
# becomes another.
OPTIMIZERS: dict[str, Part[torch.optim.Optimizer]] = {
    "sgd": Part(torch.optim.SGD, lr=1e-4),
    "adam": Part(torch.optim.AdamW, lr=1e-5, weight_decay=0.0, fused=True),
    "adadelta": Part(torch.optim.Adadelta, lr=0.01, rho=0.95),
    "adagrad": Part(torch.optim.Adagrad, lr=1e-5),
}


def forcing_of(row: Row) -> TeacherForcing:
    return FORCINGS[row["teacher_forcing"]](coin=row["coin"], guess=row["guess"])


def fed_reference(row: Row, batch: Batch) -> torch.Tensor | None:
    """(B, T) bool: where the decoder is fed the reference; None is everywhere."""
    return toss(forcing_of(row), STEP, batch, SEED)


def in_precision(row: Row) -> AbstractContextManager[Any]:
    return torch.autocast("cpu", torch.bfloat16) if row["precision"] == "bf16" else nullcontext()


def loss_of(model: Seq2Seq, batch: Batch, row: Row = USUAL) -> torch.Tensor:
    unrolled = speed_up(model)(
        batch, fed_reference(row, batch), sample_guesses=forcing_of(row).guess == "sample"
    )
    loss = summed_loss(model.output, unrolled, batch, row["label_smoothing"]).loss
    loss = loss + reinforced(model, unrolled, batch)
    return loss if unrolled.history_loss is None else loss + unrolled.history_loss


def reinforced(model: Seq2Seq, unrolled: Unrolled, batch: Batch) -> torch.Tensor | float:
    """The term of a model that draws its weights, after a step that expected half a nat."""
    if unrolled.drawn is None:
        return 0.0
    assert model.decoder.attention is not None
    assert model.decoder.attention.drawing is not None
    learned = Reinforcement(model.decoder.attention.drawing)
    learned.average.fill_(-0.5)
    learned.weight.fill_(1.0)
    losses = token_losses(model.output, unrolled, batch, label_smoothing=0.0).loss
    return learned(losses, batch.target_mask, unrolled.drawn)


def exact_loss(model: Seq2Seq, unrolled: Unrolled, batch: Batch) -> torch.Tensor:
    """The training loss, in the model's own precision."""
    logits = model.output(unrolled.reading[batch.target_mask])
    loss = cross_entropy(logits, batch.target_output[batch.target_mask], reduction="sum")
    loss = loss + reinforced(model, unrolled, batch)
    return loss if unrolled.history_loss is None else loss + unrolled.history_loss


def check_bfloat16(model: Seq2Seq, batch: Batch) -> None:
    """The same loss to two digits, and finite gradients."""
    model.train()
    exact = loss_of(model, batch)
    with torch.autocast("cpu", torch.bfloat16):
        loss = loss_of(model, batch)
    assert loss.dtype == torch.float32
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    torch.testing.assert_close(loss, exact, rtol=0.02, atol=0)


SHARPNESS_LEARNED = ("learned_temperature", "adaptive_entmax")


def parameters_that_nothing_reads(model: Seq2Seq, row: Row) -> set[str]:
    """Parameters that have no part in the loss of a legal model, each with its reason."""
    top = len(model.encoder.forward_layers) - 1
    named = {name for name, _ in model.named_parameters()}
    # Bahdanau's first state is that of the backward direction alone, and without attention nothing
    # else is read.
    if row["bridge"] == "first_backward" and row["decoder"] == ("no_attention", "initial_state"):
        return {name for name in named if name.startswith(f"encoder.forward_layers.{top}.")}
    # Equal scores give equal weights, however sharp they are made.
    if row["attention"] == "uniform" and row["normaliser"] in SHARPNESS_LEARNED:
        return {name for name in named if name.endswith("normaliser.a")}
    return set()


def parameters_that_short_sentences_may_not_read(model: Seq2Seq, row: Row) -> set[str]:
    """Those that forward attention makes idle where a short sentence leaves it no choice.

    It starts anew, whatever its agent said, where the one token with all the weight, or the window,
    is out of its reach. Of one token in reach, a renormalised window changes nothing.
    """
    idle: list[str] = []
    if row["history"] == "forward_with_agent" and (
        row["normaliser"] in HARD or row["scope"] != "global"
    ):
        idle.append(".history.")
    if row["history"].startswith("forward") and row["scope"] == "local_p_renormalised":
        idle.append(".scope.")
    # Hard weights of equal scores choose the first token, before which no state is read.
    if row["attention"] == "uniform" and row["normaliser"] == "hard" and row["bridge"] == "zero":
        idle.append("encoder.forward_layers.0.weight_hh")
    # The few weights of a short sentence leave an alignment one way to go, whatever the scores.
    if row["output"] in FOLLOWS_ALIGNMENT and row["normaliser"] == "top_k":
        idle += ["output.of_", ".score.", ".history.", ".scope."]
    names = [name for name, _ in model.named_parameters()]
    return {name for name in names if any(part in name for part in idle)}


def loss_must_fall(row: Row) -> bool:
    """Guesses that are drawn anew, or rounded sums, may hide what a small step does.

    It is bfloat16 that rounds them. The gradient of hard weights is that of another loss.
    """
    draws = row["guess"] == "sample" and row["teacher_forcing"] != "constant_1"
    draws = draws or row["history"] in MAKES_ITS_WEIGHTS
    return row["precision"] == "full" and not draws and row["normaliser"] not in HARD


def train_one_step(model: Seq2Seq, batch: Batch, row: Row = USUAL) -> None:
    """It must reach every parameter that the loss reads, by a finite gradient, and lower the loss.

    Where the loss has chance in it or rounding, it need not fall, but must stay finite.
    """
    model.train()
    with in_precision(row):
        before = loss_of(model, batch, row)
    before.backward()
    unread = parameters_that_nothing_reads(model, row)
    reached = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    names = {name for name, _ in model.named_parameters()}
    optional = parameters_that_short_sentences_may_not_read(model, row)
    assert names - optional <= reached | unread <= names
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), name
    OPTIMIZERS[row["optimizer"]](model.parameters()).step()
    with torch.no_grad(), in_precision(row):
        after = loss_of(model, batch, row)
    assert after.isfinite()
    assert after < before or not loss_must_fall(row)
