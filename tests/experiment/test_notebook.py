"""An experiment in a notebook: what it does to the notebook's process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import attnlab


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
