"""Interventions: what each does to the attention of every score, scope and decoder."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from composed_variants import usual_first
from legal_choices import ATTENDING, SCOPES, SCORES, WITHOUT_CONTEXT_IN_READOUT

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.model.attention.intervention import Intervention

PADDING = Padding("post", "post")
DECODERS = ("attend_then_step", "step_then_attend")


def readout(context: str) -> str:
    return "state" if context in WITHOUT_CONTEXT_IN_READOUT else "tanh"


CHOICES = [
    *({"attention": score, "decoder": decoder} for score in SCORES for decoder in DECODERS),
    *({"scope": scope, "decoder": decoder} for scope in SCOPES for decoder in DECODERS),
    *(
        {"decoder": decoder, "context": context, "readout": readout(context)}
        for decoder, context in ATTENDING
    ),
    *({"normaliser": name} for name in usual_first("normaliser")[1:]),
    {"history": "coverage"},
    {"heads": 2},
    {"input_feeding": "attentional_hidden", "decoder": "step_then_attend"},
]
every_attention = pytest.mark.parametrize(
    "choices", CHOICES, ids=lambda choices: ",".join(map(str, choices.values()))
)


@pytest.fixture
def batch(pairs):
    return make_batch(*pairs(), PADDING)


# With heads, each has weights of its own, and only their mean is known.
@pytest.mark.parametrize("choices", [each for each in CHOICES if "heads" not in each], ids=str)
def test_own_weights_given_back_change_nothing(tiny_model, pairs, choices):
    model = tiny_model(**choices, padding=PADDING)
    batch = make_batch(*pairs((5,), (4,)), PADDING)
    plain = model(batch)
    own = dict(enumerate(plain.attention_weights[0].tolist()))
    given = model(batch, intervention=Intervention(weights=own))
    torch.testing.assert_close(given.reading.readout, plain.reading.readout, rtol=0, atol=1e-6)
    torch.testing.assert_close(given.attention_weights, plain.attention_weights, rtol=0, atol=1e-6)


@every_attention
def test_hidden_positions_get_exactly_zero_and_the_others_still_something(
    tiny_model, batch, choices
):
    model = tiny_model(**choices, padding=PADDING)
    weights = model(batch, intervention=Intervention(hide=[0, 2])).attention_weights
    assert weights.isfinite().all()
    assert (weights[:, :, [0, 2]] == 0).all()
    # The longest source has tokens left in every window of the scopes.
    assert (weights[2].sum(-1) > 0).all()


@every_attention
def test_uniform_weights_are_equal_wherever_the_attention_may_look(tiny_model, batch, choices):
    model = tiny_model(**choices, padding=PADDING)
    weights = model(batch, intervention=Intervention("uniform")).attention_weights
    may_look = weights > 0
    assert not (may_look & ~batch.source_mask.unsqueeze(1)).any()
    assert may_look.any(-1).all()
    expected = may_look / may_look.sum(-1, keepdim=True)
    torch.testing.assert_close(weights, expected.to(weights.dtype))
    if "scope" not in choices:
        assert torch.equal(may_look, batch.source_mask.unsqueeze(1).expand_as(may_look))


@every_attention
def test_permuted_weights_are_the_same_ones_at_other_places(tiny_model, pairs, choices):
    model = tiny_model(**choices, padding=PADDING, scale=3.0)
    batch = make_batch(*pairs((9,), (5,)), PADDING)
    plain = model(batch).attention_weights[0]
    permuted = model(batch, intervention=Intervention("permuted", seed=3)).attention_weights[0]
    if not choices.get("heads"):  # a later step may have another query
        torch.testing.assert_close(permuted[0].sort().values, plain[0].sort().values)
    stays = choices.get("attention") == "uniform"  # equal weights look the same in any order
    assert torch.allclose(permuted, plain, atol=1e-3) == stays
    other = model(batch, intervention=Intervention("permuted", seed=4)).attention_weights[0]
    assert torch.allclose(permuted, other, atol=1e-3) == stays


def test_permutation_does_not_depend_on_the_batch(tiny_model, pairs):
    sources, targets = pairs((9, 4), (3, 2))
    change = Intervention("permuted", seed=3)
    for side in ("pre", "post"):
        model = tiny_model(padding=Padding(side, "post"))
        together = make_batch(sources, targets, Padding(side, "post"))
        alone = make_batch(sources[1:], targets[1:], Padding(side, "post"))
        real = model(together, intervention=change).attention_weights[1][:, together.source_mask[1]]
        torch.testing.assert_close(real[:3], model(alone, intervention=change).attention_weights[0])


@every_attention
def test_steps_and_all_at_once_agree_under_interventions(tiny_model, batch, choices):
    """Most decoders take all steps of a reference at once; a search takes one after the other."""
    model = tiny_model(**choices, padding=PADDING)
    change = Intervention("permuted", temperature=0.5, hide=[1], weights={1: [0.5] * 3})
    unrolled = model(batch, intervention=change)
    memory, state = model.encode(batch.source, batch.source_mask, change)
    for t in range(batch.target_input.shape[1]):
        logits, state, weights = model.step(batch.target_input[:, t], state, memory)
        real = batch.target_mask[:, t]
        torch.testing.assert_close(logits[real], model.output(unrolled.reading[:, t])[real])
        torch.testing.assert_close(weights[real], unrolled.attention_weights[real, t])


@pytest.mark.parametrize("score", SCORES)
def test_temperature_is_that_of_the_softmax(tiny_model, batch, score):
    model = tiny_model(attention=score, decoder="step_then_attend", padding=PADDING, scale=3.0)
    plain = model(batch).attention_weights[:, 0]
    cooler = model(batch, intervention=Intervention(temperature=2.0)).attention_weights[:, 0]
    # softmax(z / 2) goes as the root of softmax(z)
    expected = plain.sqrt() / plain.sqrt().sum(-1, keepdim=True)
    torch.testing.assert_close(cooler, expected)


def test_mask_of_the_pads_can_be_taken_off(tiny_model, batch):
    masked = tiny_model(padding=PADDING)
    unmasked = tiny_model(padding=Padding("post", "post", attention_masked=False))
    weights = masked(batch, intervention=Intervention(mask_pads=False)).attention_weights
    assert (weights[~batch.source_mask.unsqueeze(1).expand_as(weights)] > 0).all()
    torch.testing.assert_close(weights, unmasked(batch).attention_weights)


def test_mask_of_the_pads_can_be_put_on(tiny_model, batch):
    masked = tiny_model(padding=PADDING)
    unmasked = tiny_model(padding=Padding("post", "post", attention_masked=False))
    weights = unmasked(batch, intervention=Intervention(mask_pads=True)).attention_weights
    assert (weights[~batch.source_mask.unsqueeze(1).expand_as(weights)] == 0).all()
    torch.testing.assert_close(weights, masked(batch).attention_weights)


def test_sentence_whose_every_token_is_hidden_gets_zeros(tiny_model, batch):
    for normaliser in usual_first("normaliser"):
        unrolled = tiny_model(normaliser=normaliser, padding=PADDING)(
            batch, intervention=Intervention(hide="all")
        )
        assert (unrolled.attention_weights == 0).all()
        assert unrolled.reading.readout.isfinite().all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "flat"}, "kind must be"),
        ({"temperature": 0}, "temperature must be above 0"),
        ({"hide": [-1]}, "from 0 on"),
        ({"weights": {0: [0.5, -0.1]}}, "weights of step 0"),
        ({"weights": {0: [float("nan")]}}, "weights of step 0"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_invalid_intervention_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Intervention(**values)


def test_intervention_takes_sets_arrays_and_whole_maps():
    given = Intervention(hide={2, 1}, weights=torch.eye(2), force={np.int64(1): "a"})
    assert set(given.hide) == set(Intervention(hide=np.array([1, 2])).hide) == {1, 2}
    assert given.weights == {0: (1.0, 0.0), 1: (0.0, 1.0)}
    assert given.steps == 2


def test_positions_beyond_the_source_are_refused():
    with pytest.raises(
        ValueError, match="hide must name positions below 5, the source's tokens, got 5"
    ):
        Intervention(hide=[5]).check_source(5)
    with pytest.raises(ValueError, match="weights of step 2 must be 5"):
        Intervention(weights={2: np.ones(4).tolist()}).check_source(5)
