"""The bar of a training: what it says, on a terminal and elsewhere."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from attnlab.training.progress import TrainingProgress


def running(step: int, **metrics: float) -> SimpleNamespace:
    """What the bar reads of a trainer."""
    named = {name.replace("__", "/"): torch.tensor(value) for name, value in metrics.items()}
    return SimpleNamespace(
        estimated_stepping_batches=20, global_step=step, current_epoch=1, num_val_batches=[3], callback_metrics=named
    )


def written(terminal: bool, enabled: bool = True) -> str:
    """A bar that begins at step 4, meets two steps and a validation, and ends."""
    out, model = io.StringIO(), SimpleNamespace(settings=SimpleNamespace(log_every=5))
    bar = TrainingProgress()
    bar._console = Console(file=out, force_terminal=terminal, width=120)
    if not enabled:
        bar.disable()
    bar.on_validation_start(running(0), model)  # the sanity check, before there is a bar
    bar.on_validation_end(running(0), model)
    bar.on_train_start(running(4), model)
    bar.on_train_batch_end(running(5, train__token_nll=1.25), model, None, None, 0)
    bar.on_train_batch_end(running(6, train__token_nll=9.75), model, None, None, 1)
    validated = running(6, validation__bleu=30.5, validation__token_nll=1.5, validation__perplexity=4.5)
    bar.on_validation_start(validated, model)
    bar.on_validation_batch_end(validated, model, None, None, 0)
    bar.on_validation_end(validated, model)
    bar.on_train_end(running(6), model)
    bar.on_exception(running(6), model, KeyboardInterrupt())  # there is nothing left to stop
    return out.getvalue()


LINE = "step      6  validation: token nll 1.500 · bleu 30.500"


def test_elsewhere_only_the_validations_are_written():
    assert written(terminal=False) == f"{LINE}\n"


def test_on_a_terminal_there_is_a_bar_with_the_last_logged_loss():
    found = written(terminal=True)
    assert LINE in found
    assert "epoch 1 · nll 1.250" in found
    assert "6/20" in found
    assert "9.750" not in found  # not of a step that is logged
    assert "4.5" not in found  # the perplexity says what the loss said


@pytest.mark.parametrize("terminal", [True, False])
def test_every_process_but_the_first_is_silent(terminal):
    assert written(terminal, enabled=False) == ""
