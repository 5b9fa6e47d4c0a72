"""The seed of an experiment draws weights and order; the order may have a seed of its own."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.config.names import readable_name
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.experiment.preparation import prepare
from attnlab.experiment.training import make_batches, make_module


@pytest.fixture
def drawn(tmp_path: Path) -> Any:
    """Of a command's overrides: the weights that training starts with, and the first batches."""

    def draw(*overrides: str) -> tuple[list[torch.Tensor], list[list[list[int]]]]:
        settings = ["data=copy", "data.num_pairs=200", f"paths.runs={tmp_path}", *overrides]
        experiment = compose(settings)
        data = prepare(experiment)
        module: Any = make_module(experiment, data)
        batches = islice(make_batches(experiment, data).train_dataloader(), 2)
        return list(module.model.parameters()), [batch.source.tolist() for batch in batches]

    return draw


def are_equal(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_seed_of_the_order_changes_the_batches_and_leaves_the_weights(drawn: Any) -> None:
    weights, batches = drawn("seed=1", "training.batching.seed=5")
    same_weights, other_batches = drawn("seed=1", "training.batching.seed=6")
    other_weights, same_batches = drawn("seed=2", "training.batching.seed=5")
    assert are_equal(weights, same_weights)
    assert batches != other_batches
    assert not are_equal(weights, other_weights)
    assert batches == same_batches


def test_order_has_the_seed_of_the_experiment_unless_it_is_given_one(drawn: Any) -> None:
    _, batches = drawn("seed=5")
    _, same_batches = drawn("seed=1", "training.batching.seed=5")
    _, other_batches = drawn("seed=1")
    assert batches == same_batches != other_batches


def test_name_of_a_run_has_both_seeds() -> None:
    experiment = compose(["data=copy", "seed=2", "training.batching.seed=5"])
    name = readable_name(experiment.config)
    assert name.endswith("batching seed 5 · copy · seed 2")


def test_seed_of_the_order_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(ExperimentError, match=r"training\.batching\.seed"):
        compose(["data=copy", "training.batching.seed=-1"])
