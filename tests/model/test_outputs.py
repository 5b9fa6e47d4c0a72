"""The outputs: the pointer-generator's equations, its gradients, and what it is refused with."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.outputs.likelihood import smoothed_nll
from attnlab.model.outputs.output import Reading
from attnlab.model.outputs.pointer_generator import CopyReading, PointerGenerator

N, R, S, V = 9, 5, 4, 11
SIZES = {"readout_size": R, "hidden_size": 3, "context_size": 4, "embedding_size": 2}


@pytest.fixture
def output() -> PointerGenerator:
    torch.manual_seed(0)
    return PointerGenerator(**SIZES, target_vocabulary_size=V).double()


@pytest.fixture
def reading() -> CopyReading:
    random = torch.Generator().manual_seed(1)
    return CopyReading(
        readout=torch.randn(N, R, generator=random, dtype=torch.float64).requires_grad_(),
        gate=torch.randn(N, generator=random, dtype=torch.float64).requires_grad_(),
        weights=torch.rand(N, S, generator=random, dtype=torch.float64).softmax(1).requires_grad_(),
        source=torch.randint(V, (N, S), generator=random),
    )


def labels() -> torch.Tensor:
    """(N,), drawn from the whole vocabulary."""
    random = torch.Generator().manual_seed(2)
    return torch.randint(V, (N,), generator=random)


def leaves(output: PointerGenerator, reading: CopyReading) -> list[torch.Tensor]:
    return [reading.readout, reading.gate, reading.weights, *output.generator.parameters()]


def test_pointer_generator_mixes_writing_and_copying(output, reading):
    found = output(reading).exp().detach().numpy()
    logits = output.generator(reading.readout).detach().numpy()
    written = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    p_gen = 1 / (1 + np.exp(-reading.gate.detach().numpy()))
    for row in range(N):
        expected = p_gen[row] * written[row]
        for place in range(S):
            share = (1 - p_gen[row]) * reading.weights[row, place].item()
            expected[reading.source[row, place]] += share
        np.testing.assert_allclose(found[row], expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-12)


def test_loss_of_the_labels_alone_is_that_of_the_whole_distribution(output, reading):
    for row in range(5):  # these labels can be copied, others perhaps not
        reading.source[row, row % S] = labels()[row]
    whole = smoothed_nll(output(reading), labels(), 0.0)
    alone = output.summed_loss(reading, labels(), 0.0)
    torch.testing.assert_close(alone.loss, whole.loss, rtol=1e-12, atol=0)
    expected = torch.autograd.grad(whole.loss, leaves(output, reading))
    found = torch.autograd.grad(alone.loss, leaves(output, reading))
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradients_equal_finite_differences(smoothing, output, reading):
    def loss(readout, gate, weights):
        changed = CopyReading(readout, gate, weights, reading.source)
        return output.summed_loss(changed, labels(), smoothing).loss

    assert torch.autograd.gradcheck(loss, (reading.readout, reading.gate, reading.weights))


@pytest.mark.parametrize("gate", [-80.0, 0.0, 80.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradients_are_finite_where_nothing_is_copied_and_the_gate_is_extreme(gate, smoothing):
    torch.manual_seed(0)
    output = PointerGenerator(**SIZES, target_vocabulary_size=V)
    reading = CopyReading(
        readout=torch.randn(2, R).requires_grad_(),
        gate=torch.full((2,), gate).requires_grad_(),
        weights=torch.tensor([[1.0, 0.0], [0.5, 0.5]]).requires_grad_(),
        source=torch.tensor([[4, 5], [4, 4]]),
    )
    loss = output.summed_loss(reading, torch.tensor([7, 4]), smoothing).loss
    assert loss.isfinite()
    loss.backward()
    for leaf in leaves(output, reading):
        assert leaf.grad.isfinite().all()


def test_token_that_stands_twice_in_the_source_is_copied_with_both_weights(output):
    reading = CopyReading(
        readout=torch.zeros(1, R, dtype=torch.float64),
        gate=torch.tensor([-60.0], dtype=torch.float64),
        weights=torch.tensor([[0.25, 0.5, 0.25]], dtype=torch.float64),
        source=torch.tensor([[6, 5, 6]]),
    )
    probabilities = output(reading).exp()[0]
    assert probabilities[6].item() == pytest.approx(0.5)
    assert probabilities[5].item() == pytest.approx(0.5)


def test_reading_of_chosen_steps_has_each_of_its_tensors_chosen(reading):
    chosen = reading[torch.tensor([2, 0])]
    assert chosen.readout.shape == (2, R)
    assert torch.equal(chosen.source, reading.source[[2, 0]])
    assert torch.equal(Reading(reading.readout)[1:3].readout, reading.readout[1:3])


def test_model_whose_gate_is_closed_writes_the_source_that_it_looks_at(tiny_model, pairs):
    model = tiny_model(output="pointer_generator", target_vocabulary_size=11)
    with torch.no_grad():
        model.output.gate.weight.zero_()
        model.output.gate.bias.fill_(-50)
    batch = make_batch(*pairs(), model.padding)
    unrolled = model(batch)
    probabilities = model.output(unrolled.reading).exp()
    for row in range(len(batch)):
        for step in range(int(batch.target_mask[row].sum())):
            expected = torch.zeros(11, dtype=torch.float64)
            expected.index_add_(0, batch.source[row], unrolled.attention_weights[row, step])
            torch.testing.assert_close(probabilities[row, step], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"decoder": "no_attention"}, "goes by the attention weights, but model.attention is null"),
        ({"normaliser": "sigmoid"}, "choose model/normaliser=softmax"),
        ({"scope": "local_p"}, "model.scope.renormalise=true with a local-p scope"),
        ({"history": "monotonic"}, "a model/history that keeps the sum"),
        ({"history": "mocha"}, "a model/history that keeps the sum"),
        ({"heads": 2, "normaliser": "softmax1"}, "as a distribution over the source"),
        ({"target_vocabulary_size": 9}, "the source has 11 tokens and the target 9"),
    ],
)
def test_choices_without_a_distribution_to_copy_from_are_refused(choices, words, tiny_model):
    with pytest.raises(ExperimentError, match=words):
        tiny_model(output="pointer_generator", **({"target_vocabulary_size": 11} | choices))
