"""Passes as CUDA graphs, with what captures them replaced, so that no GPU is needed.

What a real capture computes is tested on a GPU, in tests/model/test_gpu.py.
"""

from __future__ import annotations

import pytest
import torch
from composed_variants import Variant, build

from attnlab.batch import Batch, Padding
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.training.graphs import GraphedPasses, lengthened
from attnlab.training.loss import summed_loss

PRE_POST = Padding()
EVERY_SIDE = [
    Padding(encoder, decoder) for encoder in ("pre", "post") for decoder in ("pre", "post")
]


def batch_of(padding: Padding = PRE_POST, longest: int = 5) -> Batch:
    sources = [[4] * longest, [5, 6], [7, 8, 9]]
    targets = [[4, 5], [6] * (longest - 1), [7]]
    return make_batch(sources, targets, padding)


@pytest.mark.parametrize("padding", EVERY_SIDE, ids=str)
def test_lengthened_batch_has_the_loss_of_the_batch(padding: Padding):
    model = build(Variant("history", "coverage"), padding=padding)
    batch = batch_of(padding)
    longer = lengthened(batch, padding)
    assert longer.source.shape == (3, 8)
    assert longer.target_input.shape == (3, 8)
    assert longer.num_target_tokens == batch.num_target_tokens == int(longer.target_mask.sum())

    losses = [summed_loss(model.output, model(each), each, 0.1) for each in (batch, longer)]
    histories = [model(each).history_loss for each in (batch, longer)]
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(histories[1], histories[0], rtol=1e-10, atol=1e-10)


def test_lengths_that_are_multiples_stay():
    longer = lengthened(batch_of(), Padding(), multiple=6)
    assert longer.source.shape == (3, 6)
    assert torch.equal(longer.source, batch_of().source)
    assert torch.equal(longer.rows, batch_of().rows)


class Captures:
    """Stands for `torch.cuda.make_graphed_callables`: runs what it is given, and remembers it."""

    def __init__(self, refused: str = "") -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.refused = refused

    def __call__(self, passed, example, *, allow_unused_input, pool):
        if self.refused:
            raise RuntimeError(self.refused)
        self.shapes.append(tuple(example[0].shape))
        passed(*example)


def test_shape_is_captured_when_it_is_met_again():
    captures = Captures()
    passes = GraphedPasses(build(Variant("attention", "bahdanau")), captures)
    for longest in (5, 6, 5, 6, 5, 7):
        passes(batch_of(longest=longest))
    assert captures.shapes == [(3, 6), (3, 7)]
    assert passes.graphs == 2


@pytest.mark.parametrize(
    "variant",
    [
        Variant("attention", "bahdanau"),
        Variant("attention", "none", "no_attention"),
        Variant("history", "coverage"),
        Variant("output", "pointer_generator"),
        Variant("decoder", "transformer"),
    ],
    ids=str,
)
def test_captured_pass_is_the_models(variant: Variant):
    model = build(variant)
    passes = GraphedPasses(model, Captures())
    for _ in range(3):
        found = passes(batch_of())
    expected = model(batch_of())
    torch.testing.assert_close(found.reading.columns(), expected.reading.columns())
    torch.testing.assert_close(found.attention_weights, expected.attention_weights)
    torch.testing.assert_close(found.history_loss, expected.history_loss)


def test_model_that_cannot_be_captured_is_refused():
    waits = Captures("operation not permitted when stream is capturing\nmore lines")
    passes = GraphedPasses(build(Variant("attention", "bahdanau")), waits)
    passes(batch_of())
    with pytest.raises(ExperimentError, match=r"hardware.graphs must be false .* is capturing\)$"):
        passes(batch_of())


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("padding.recurrence=read", "hardware.graphs must be false where pads are read"),
        ("padding.attention_masked=false", "hardware.graphs must be false where pads are read"),
        ("training.accumulate=2", "hardware.graphs must be false with training.accumulate above 1"),
        ("model/output=hard_attention", "hardware.graphs must be false with the output HardAtt"),
        ("task=classification", "hardware.graphs must be false: a classifier has no loop"),
    ],
)
def test_experiment_that_does_not_go_with_graphs_is_refused(override: str, expected: str):
    with pytest.raises(ExperimentError, match=expected):
        compose(["hardware=gpu", "hardware.graphs=true", override])
