"""The pointer network: its equation, its gradients, its searches, and what it is refused with."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from attnlab.batch import EOS, Padding
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.model.outputs.pointer_network import PointerNetwork, PointerReading
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.tasks.translation.task import _check_targets_can_be_copied
from attnlab.training.loss import summed_loss, summed_nll

N, S, V = 9, 4, 11
# That of the paper: the state after the last token asks, and no context goes anywhere.
CHOICES = {
    "output": "pointer_network",
    "target_vocabulary_size": V,
    "decoder": "step_then_attend",
    "context": "readout",
    "readout": "plain",
}


@pytest.fixture
def reading() -> PointerReading:
    random = torch.Generator().manual_seed(1)
    weights = torch.rand(N, S, generator=random, dtype=torch.float64)
    return PointerReading(
        readout=torch.zeros(N, 1, dtype=torch.float64),
        weights=(weights / weights.sum(1, keepdim=True)).requires_grad_(),
        source=torch.randint(4, 7, (N, S), generator=random),
    )


def labels_of(reading: PointerReading) -> torch.Tensor:
    """(N,), a token of each source."""
    return reading.source[torch.arange(N), torch.arange(N) % S]


def test_probability_of_a_token_is_the_sum_of_the_weights_of_its_places(reading):
    output = PointerNetwork(target_vocabulary_size=V)
    found = output(reading).exp().detach().numpy()
    expected = np.zeros((N, V))
    for row in range(N):
        for place in range(S):
            expected[row, reading.source[row, place]] += reading.weights[row, place].item()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-12)
    labels = labels_of(reading)
    nll = -np.log(expected[np.arange(N), labels.numpy()]).sum()
    loss = output.summed_loss(reading, labels, 0.0)
    assert loss.loss.item() == pytest.approx(nll, rel=1e-12)
    assert loss.nll.item() == pytest.approx(nll, rel=1e-12)


def test_gradients_equal_finite_differences(reading):
    output = PointerNetwork(target_vocabulary_size=V)

    def loss(weights):
        changed = PointerReading(reading.readout, weights, reading.source)
        return output.summed_loss(changed, labels_of(reading), 0.0).loss

    assert torch.autograd.gradcheck(loss, (reading.weights,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_token_that_the_source_lacks_has_a_finite_loss_without_a_gradient(dtype):
    output = PointerNetwork(target_vocabulary_size=V)
    weights = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=dtype).requires_grad_()
    reading = PointerReading(torch.zeros(2, 1), weights, torch.tensor([[4, 5], [4, 5]]))
    loss = output.summed_loss(reading, torch.tensor([5, 7]), 0.0).loss
    loss.backward()
    tiny = torch.finfo(loss.dtype).tiny
    assert loss.item() == pytest.approx(-2 * np.log(tiny), rel=1e-6)
    assert torch.equal(weights.grad, torch.zeros_like(weights))
    assert output(reading).isfinite().all()


def test_label_smoothing_is_refused(reading):
    output = PointerNetwork(target_vocabulary_size=V)
    with pytest.raises(ExperimentError, match=r"choose training\.label_smoothing=0"):
        output.summed_loss(reading, labels_of(reading), 0.1)


@pytest.mark.parametrize("scheme", [("pre", "post"), ("post", "pre")])
def test_batch_gives_each_sentence_what_it_gets_alone(scheme, tiny_model, pairs):
    padding = Padding(*scheme)
    model = tiny_model(**CHOICES, padding=padding, scale=2.0)
    sources, targets = pairs()
    targets = [[*source][::-1] for source in sources]
    together = make_batch(sources, targets, padding)
    unrolled = model(together)
    log_probs = model.output(unrolled.reading)
    total = 0.0
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = make_batch([source], [target], padding)
        expected = model.output(model(alone).reading)[0]
        found = log_probs[row][together.target_mask[row]]
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
        total += summed_nll(model.output, model(alone), alone).item()
    assert summed_nll(model.output, unrolled, together).item() == pytest.approx(total, rel=1e-9)


def test_step_by_step_equals_all_steps_at_once_with_every_gradient(tiny_model, pairs):
    model = tiny_model(**CHOICES, scale=2.0)
    sources, _ = pairs()
    batch = make_batch(sources, sources, model.padding)
    summed_loss(model.output, model(batch), batch, 0.0).loss.backward()
    once = {name: each.grad.clone() for name, each in model.named_parameters()}
    model.zero_grad()
    feed = torch.ones_like(batch.target_mask)  # not None: the loop over the steps
    summed_loss(model.output, model(batch, feed), batch, 0.0).loss.backward()
    for name, each in model.named_parameters():
        torch.testing.assert_close(each.grad, once[name], rtol=1e-8, atol=1e-10)
        assert each.grad.any(), name


def test_search_writes_tokens_of_the_source_and_greedy_is_a_beam_of_one(tiny_model, pairs):
    model = tiny_model(**CHOICES, scale=3.0).eval()
    sources, _ = pairs()
    batch = make_batch(sources, sources, model.padding)
    with torch.no_grad():
        greedy = GreedySearch(12)(model, batch.source, batch.source_mask)
        beam = BeamSearch(1, 0.0, 12)(model, batch.source, batch.source_mask)
        wide = BeamSearch(4, 0.0, 12)(model, batch.source, batch.source_mask)
    for source, one, other, best in zip(sources, greedy, beam, wide, strict=True):
        assert one[0].tokens == other[0].tokens
        assert one[0].score == pytest.approx(other[0].score)
        assert set(one[0].tokens) | set(best[0].tokens) <= set(source)
    assert any(each[0].tokens for each in greedy)


def test_eos_of_the_source_ends_the_target(tiny_model, pairs):
    model = tiny_model(**CHOICES).eval()
    sources, _ = pairs()
    at_eos = {0: [0.0] * len(sources[0]) + [1.0]}
    alone = make_batch(sources[:1], sources[:1], model.padding)
    unrolled = model(alone, intervention=Intervention(weights=at_eos))
    assert model.output(unrolled.reading)[0, 0].argmax() == EOS


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"readout": "tanh"}, "so that the readout TanhReadout would never learn; choose"),
        ({"heads": 2}, "nothing reads the context that several heads or a gate make"),
        ({"gate": "elementwise"}, "nothing reads the context that several heads or a gate make"),
        ({"attention_dropout": 0.5}, "nothing reads the context whose weights are dropped; choose"),
        ({"attention": "uniform"}, "the uniform score has nothing to learn"),
        ({"normaliser": "hard"}, "learns nothing of a token whose weight is 0"),
        ({"normaliser": "sigmoid"}, "as a distribution over the source"),
        ({"tied_embeddings": "target"}, "this output has no layer over the vocabulary"),
        ({"target_vocabulary_size": 9}, "the source has 11 tokens and the target 9"),
    ],
)
def test_choices_that_leave_nothing_to_point_with_are_refused(choices, words, tiny_model):
    with pytest.raises(ExperimentError, match=words):
        tiny_model(**(CHOICES | choices))


def test_weights_are_dropped_where_a_cell_reads_their_context(tiny_model):
    model = tiny_model(
        **CHOICES | {"decoder": "attend_then_step", "context": "cell", "attention_dropout": 0.5}
    )
    assert model.decoder.attention.dropout.p == 0.5


class Pairs:
    """A split with these pairs of token ids."""

    def __init__(self, *pairs: tuple[list[int], list[int]]) -> None:
        self.source = [source for source, _ in pairs]
        self.target = [target for _, target in pairs]

    def __len__(self) -> int:
        return len(self.source)


CAN, CANNOT = ([5, 6], [6, 6]), ([5, 6], [6, 7])


def test_pairs_that_cannot_be_copied_are_counted(capsys):
    splits = {"train": Pairs(CAN, CANNOT, CANNOT), "validation": Pairs(CAN), "test": Pairs(CANNOT)}
    _check_targets_can_be_copied(PointerNetwork, SimpleNamespace(split=splits.get))
    warnings = capsys.readouterr().err.splitlines()
    assert [warning.partition(" have")[0] for warning in warnings] == [
        "warning: 2 of the 3 pairs of the train split",
        "warning: 1 of the 1 pairs of the test split",
    ]


def test_data_of_which_no_pair_can_be_copied_are_refused():
    splits = {"train": Pairs(CANNOT)}
    with pytest.raises(ExperimentError, match="every target of the training split has a token"):
        _check_targets_can_be_copied(PointerNetwork, SimpleNamespace(split=splits.get))
