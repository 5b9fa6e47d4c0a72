"""The switch to faster layers: what it changes, and that the numbers stay."""

from __future__ import annotations

import copy

import pytest
import torch
from covering_array import covering_array
from legal_choices import arguments
from torch import nn
from without_draws import without_draws

from attnlab.data.padding import make_batch
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.intervention import Intervention
from attnlab.model.fast import FASTER, speed_up
from attnlab.model.fast.decoder import ProjectedToken
from attnlab.model.fast.linear import FastLinear, fast_linear, gradients_after_the_pass
from attnlab.model.seq2seq import Seq2Seq

ROWS = covering_array()[0]
# Whose attention may be switched off: all steps at once, step by step, with and without a memory.
WITHOUT_ATTENTION = [
    {"decoder": "step_then_attend"},
    {"decoder": "attend_then_step", "cell": "lstm", "history": "coverage"},
    {"decoder": "step_then_attend", "heads": 2, "gate": "per_head"},
    {"decoder": "attend_then_step", "scope": "local_p", "history": "location_sensitive"},
]


def layer_kinds(model: nn.Module) -> set[type]:
    return {type(layer) for layer in model.modules()}


def test_sped_up_model_keeps_its_parameters_their_names_and_the_random_state(tiny_model):
    model = tiny_model(cell="lstm", heads=2, history="coverage")
    before = {name: id(weight) for name, weight in model.named_parameters()}
    names, random_state = list(model.state_dict()), torch.random.get_rng_state()
    assert speed_up(model) is model
    assert {name: id(weight) for name, weight in model.named_parameters()} == before
    assert list(model.state_dict()) == names
    assert torch.equal(torch.random.get_rng_state(), random_state)


def test_every_layer_with_a_faster_class_is_switched(tiny_model):
    switched = set()
    for row in ROWS:
        model = tiny_model(**arguments(row))
        plain = layer_kinds(model) & FASTER.keys()
        fast = layer_kinds(speed_up(model))
        assert not fast & FASTER.keys()
        assert {FASTER[kind] for kind in plain} <= fast
        switched |= plain
    assert switched == FASTER.keys()


def test_model_that_is_sped_up_twice_stays_as_it_is(tiny_model):
    model = speed_up(tiny_model())
    once = layer_kinds(model)
    assert layer_kinds(speed_up(model)) == once


def test_faster_classes_are_subclasses_with_no_state_of_their_own():
    """Else a class could not be set, or a plain model would lack something afterwards."""
    for plain, faster in FASTER.items():
        assert issubclass(faster, plain)
        assert faster.__init__ is plain.__init__


class OwnLinear(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def test_layers_of_other_classes_stay_as_they_are():
    own = nn.Sequential(OwnLinear(2, 2), nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))
    kinds = [type(layer) for layer in own]
    assert [type(layer) for layer in speed_up(own)] == kinds


def test_copy_of_a_sped_up_model_is_sped_up(tiny_model):
    model = speed_up(tiny_model())
    assert layer_kinds(copy.deepcopy(model)) == layer_kinds(model)


def outcome(model: Seq2Seq, batch, coins, change=None) -> list[torch.Tensor | None]:
    """All that a pass returns, and the gradient of each parameter."""
    found = model(batch, coins, intervention=change)
    logits = model.output(found.reading)
    random = torch.Generator().manual_seed(1)
    loss = (logits * torch.randn(logits.shape, generator=random, dtype=logits.dtype)).sum()
    if found.history_loss is not None:
        loss = loss + found.history_loss
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [logits, found.attention_weights, found.history_loss, *gradients]


@pytest.mark.parametrize("fed", ["reference", "guesses"])
@pytest.mark.parametrize("number", range(len(ROWS)))
def test_sped_up_model_has_the_numbers_of_the_plain_one(number, fed, tiny_model, pairs):
    """Every pair of choices, in training mode without dropout, gradients too."""
    row = ROWS[number]
    # One step after the other draws other tokens than all steps at once.
    plain = without_draws(tiny_model(**arguments(row), scale=2.0).train())
    batch = make_batch(*pairs((4, 1, 3), (2, 3, 1)), row["padding"])
    coins = None
    if fed == "guesses":
        random = torch.Generator().manual_seed(1)
        coins = torch.rand(batch.target_mask.shape, generator=random) < 0.5
    expected = outcome(plain, batch, coins)
    found = outcome(speed_up(plain), batch, coins)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("change", [Intervention("uniform"), Intervention(hide="all")], ids=repr)
@pytest.mark.parametrize("choices", WITHOUT_ATTENTION, ids=repr)
def test_sped_up_model_whose_attention_is_off_has_the_numbers_of_the_plain_one(
    choices, change, tiny_model, pairs
):
    plain = tiny_model(**choices, scale=2.0).train()
    batch = make_batch(*pairs((4, 1, 3), (2, 3, 1)), plain.padding)
    expected = outcome(plain, batch, None, change)
    found = outcome(speed_up(plain), batch, None, change)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def uses_of(kind: str, loss: torch.Tensor) -> int:
    """How many nodes of this kind a graph has."""
    pending, seen = [loss.grad_fn], set()
    while pending:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            pending += [before for before, _ in node.next_functions]
    return sum(kind in type(node).__name__ for node in seen)


def test_pass_of_a_sped_up_model_collects_gradients(tiny_model, pairs):
    model = tiny_model()
    batch = make_batch(*pairs(), model.padding)
    assert uses_of("_Use", model(batch).reading.readout.sum()) == 0
    assert (
        uses_of("_Use", speed_up(model)(batch).reading.readout.sum()) > batch.target_input.shape[1]
    )


@pytest.mark.parametrize("score", ["bahdanau", "concat", "general"])
def test_projection_of_the_keys_is_collected_also_without_a_layer_of_its_own(score, tiny_model):
    """As concat's, by a part of its matrix."""
    attention = tiny_model(attention=score).decoder.attention
    outputs, positions = torch.randn(2, 3, 8, dtype=torch.float64), torch.zeros(2, 3)
    with gradients_after_the_pass():
        plain, _ = attention.project(outputs, positions)
        fast, _ = speed_up(attention).project(outputs, positions)
    assert (uses_of("_Use", plain.sum()), uses_of("_Use", fast.sum())) == (0, 1)


def test_known_tokens_are_projected_before_the_loop_and_guesses_are_not(tiny_model, pairs):
    model = speed_up(tiny_model())
    batch = make_batch(*pairs(), model.padding)
    taken: list[type] = []
    step = model.decoder.step
    model.decoder.step = lambda token, *args: taken.append(type(token)) or step(token, *args)
    model(batch)
    assert set(taken) == {ProjectedToken}
    taken.clear()
    model(batch, torch.zeros_like(batch.target_mask))
    assert ProjectedToken not in taken


def test_sped_up_score_alone_is_plain():
    """Outside of a pass, as in `attnlab.Attention`."""
    score = BahdanauScore(3, query_size=2, key_size=4)
    query, keys = torch.randn(1, 2, 2), torch.randn(1, 5, 4)
    expected = score(query, score.finish_keys(score.project_keys(keys)))
    speed_up(score)
    assert isinstance(score.W, FastLinear)
    assert torch.equal(score(query, score.finish_keys(score.project_keys(keys))), expected)
    assert torch.equal(fast_linear(keys, score.U.weight), score.U(keys))
