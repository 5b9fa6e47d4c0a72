"""One step of plain descent, and what it must do."""

from __future__ import annotations

from typing import Any

import torch

from attnlab.batch import Batch
from attnlab.model.seq2seq import Seq2Seq
from attnlab.training.loss import summed_nll


def loss_of(model: Seq2Seq, batch: Batch) -> torch.Tensor:
    unrolled = model(batch)
    loss = summed_nll(model.output, unrolled, batch)
    return loss if unrolled.coverage_loss is None else loss + unrolled.coverage_loss


def parameters_that_nothing_reads(model: Seq2Seq, row: dict[str, Any]) -> set[str]:
    """Parameters that have no part in the loss of a legal model, each with its reason."""
    top = len(model.encoder.forward_layers) - 1
    named = {name for name, _ in model.named_parameters()}
    # Bahdanau's first state is that of the backward direction alone, and without attention nothing else is read.
    if row.get("bridge") == "first_backward" and row.get("decoder") == ("no_attention", "initial_state"):
        return {name for name in named if name.startswith(f"encoder.forward_layers.{top}.")}
    return set()


def train_one_step(model: Seq2Seq, batch: Batch, row: dict[str, Any] | None = None) -> None:
    """It must reach every parameter that the loss reads, by a finite gradient, and lower the loss."""
    model.train()
    before = loss_of(model, batch)
    before.backward()
    unread = parameters_that_nothing_reads(model, row or {})
    reached = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert reached == {name for name, _ in model.named_parameters()} - unread
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                assert parameter.grad.isfinite().all(), name
                parameter -= 1e-3 * parameter.grad
        assert loss_of(model, batch) < before
