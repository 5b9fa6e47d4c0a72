"""An experiment in a notebook: what it does to the notebook's process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import attnlab
from attnlab.model.fast.output import FastLinearOutput
from attnlab.training.loss import summed_nll


@pytest.fixture(autouse=True)
def _same_threads_afterwards() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2])
def test_notebook_module_computes_with_the_threads_of_its_config(
    threads: int, tmp_path: Path
) -> None:
    """With torch's own number, a thread a core, small steps wait for all of them."""
    small = ("data=copy", "data.num_pairs=100", f"paths.runs={tmp_path / 'runs'}")
    experiment = attnlab.compose([*small, f"hardware.threads={threads}"])
    data = experiment.prepare()
    torch.set_num_threads(3 - threads)
    experiment.module(data)
    assert torch.get_num_threads() == threads


def test_plain_layers_of_a_training_have_the_numbers_of_the_faster_ones(tmp_path: Path) -> None:
    small = ("data=copy", "data.num_pairs=100", "hardware.precision=32")
    found = []
    for fast in ("true", "false"):
        experiment = attnlab.compose(
            [*small, f"hardware.fast={fast}", f"paths.runs={tmp_path / 'runs'}"]
        )
        data = experiment.prepare()
        model = experiment.module(data).model.train()
        assert isinstance(model.output, FastLinearOutput) == (fast == "true")
        batch = data.split("train").batch(np.arange(8), experiment.padding)
        torch.manual_seed(0)
        loss = summed_nll(model.output, model(batch), batch)
        loss.backward()
        gradients = {name: weight.grad for name, weight in model.named_parameters()}
        found.append((loss.detach(), gradients))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
