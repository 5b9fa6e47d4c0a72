"""Small models with and without a fault, in float64, with the same parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from small_experiments import overrides_of

from attnlab.batch import Batch, Padding
from attnlab.data.padding import make_batch
from attnlab.experiment.composition import compose
from attnlab.model.seq2seq import Seq2Seq

SIZES = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}


class Pair(NamedTuple):
    """Two models with the same parameters, in evaluation mode."""

    faulty: Any
    right: Seq2Seq
    padding: Padding

    def batch(
        self, source_lengths: Sequence[int] = (6, 3, 5), target_lengths: Sequence[int] = (2, 5, 4)
    ) -> Batch:
        random = np.random.default_rng(7)
        sources = [random.integers(4, 11, length).tolist() for length in source_lengths]
        targets = [random.integers(4, 9, length).tolist() for length in target_lengths]
        return make_batch(sources, targets, self.padding)


def built(overrides: Sequence[str]) -> tuple[Seq2Seq, Padding]:
    experiment = compose(overrides)
    torch.manual_seed(5)
    model = experiment.model(**SIZES, padding=experiment.padding)
    return model.double().eval(), experiment.padding


@pytest.fixture
def pair() -> Callable[..., Pair]:
    """Builds a model with a fault, and the right one beside it."""

    def build(fault: str, *others: str) -> Pair:
        faulty, padding = built(overrides_of(fault, *others))
        of_fault = (f"fault={fault}", "model.fault.")
        all_of_them = overrides_of(fault, *others)
        right, _ = built([text for text in all_of_them if not text.startswith(of_fault)])
        states = faulty.state_dict(), right.state_dict()
        assert states[0].keys() == states[1].keys()
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
        return Pair(faulty, right, padding)

    return build
