"""The progress of a training, on a terminal and elsewhere."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from attnlab.training.progress import TrainingProgress


def running(step: int, **metrics: float) -> SimpleNamespace:
    """The attributes of a trainer that the bar reads."""
    named = {name.replace("__", "/"): torch.tensor(value) for name, value in metrics.items()}
    return SimpleNamespace(max_steps=20, global_step=step, current_epoch=1, num_val_batches=[3], callback_metrics=named)


def written(terminal: bool, enabled: bool = True) -> str:
    """The output of a training that resumes at step 4, takes two steps, validates once and ends."""
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
    bar.on_exception(running(6), model, KeyboardInterrupt())
    return out.getvalue()


LINE = "step      6  validation: token nll 1.500 · bleu 30.500"


def test_progress_without_a_terminal_prints_validations_only():
    assert written(terminal=False) == f"{LINE}\n"


def test_progress_on_a_terminal_shows_steps_and_the_last_logged_loss():
    found = written(terminal=True)
    assert LINE in found
    assert "epoch 1 · nll 1.250" in found
    assert "6/20" in found
    assert "9.750" not in found  # step 6 is not logged
    assert "4.5" not in found  # the perplexity


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_of_other_processes_prints_nothing(terminal):
    assert written(terminal, enabled=False) == ""
