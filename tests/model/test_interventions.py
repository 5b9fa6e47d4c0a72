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
from attnlab.model.attention.patch import Patch

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


# With heads, each has weights of its own, and only their mean is known; given ones are at least 0.
@pytest.mark.parametrize(
    "choices",
    [each for each in CHOICES if "heads" not in each and each.get("normaliser") != "none"],
    ids=str,
)
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
    assert weights[2].any(-1).all()


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
        ({"temperature": 0}, "temperature must be from 0.001 to 1000"),
        ({"temperature": 1e-38}, "temperature must be from 0.001 to 1000, got 1e-38"),
        ({"temperature": float("nan")}, "temperature must be from 0.001 to 1000, got nan"),
        ({"hide": [-1]}, "from 0 on"),
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


def head_weights(model, batch, intervention=None):
    """The weights of each head (B, N, S) at the first step."""
    seen = []
    handle = model.decoder.attention.register_forward_hook(lambda *call: seen.append(call[2][1]))
    model(batch, intervention=intervention)
    handle.remove()
    return seen[0][:, :, 0]


@pytest.mark.parametrize(
    "change",
    [{"kind": "uniform"}, {"hide": [0]}, {"temperature": 3.0}, {"kind": "permuted"}],
    ids=str,
)
@pytest.mark.parametrize("history", ["none", "coverage"])
def test_intervention_on_one_head_leaves_the_others(tiny_model, batch, change, history):
    model = tiny_model(heads=3, history=history, padding=PADDING, scale=3.0)
    plain = head_weights(model, batch)
    changed = head_weights(model, batch, Intervention(**change, heads=[1]))
    of_all = head_weights(model, batch, Intervention(**change))
    assert torch.equal(changed[:, [0, 2]], plain[:, [0, 2]])
    assert torch.equal(changed[:, 1], of_all[:, 1])
    assert not torch.allclose(changed[:, 1], plain[:, 1])


def test_one_head_is_the_first_of_its_attention(tiny_model, batch):
    model = tiny_model(padding=PADDING)
    named = model(batch, intervention=Intervention(hide=[1], heads=[0])).attention_weights
    assert torch.equal(named, model(batch, intervention=Intervention(hide=[1])).attention_weights)


@pytest.mark.parametrize("decoder", ["attend_then_step", "transformer"])
def test_heads_of_every_block_are_changed(tiny_model, batch, decoder):
    model = tiny_model(decoder=decoder, heads=2, padding=PADDING, scale=3.0)
    one = model(batch, intervention=Intervention("uniform", heads=[0])).reading.readout
    both = model(batch, intervention=Intervention("uniform", heads=[0, 1])).reading.readout
    assert torch.equal(both, model(batch, intervention=Intervention("uniform")).reading.readout)
    assert not torch.allclose(one, both)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"heads": []}, "heads must name heads"),
        ({"heads": [-1]}, "heads must name heads"),
        ({"heads": [0], "mask_pads": True}, "mask_pads goes for all heads"),
        ({"heads": [0]}, "heads names heads, but nothing is changed there"),
        ({"heads": [0], "force": {0: 5}}, "heads names heads, but nothing is changed there"),
        ({"patch": "another"}, "patch must be an attnlab.Patch, got 'another'"),
    ],
    ids=str,
)
def test_wrong_heads_and_patches_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Intervention(**wrong)


PATCHED = [
    {},
    {"heads": 2, "history": "coverage"},
    {"decoder": "transformer", "heads": 2},
    {"decoder": "step_then_attend", "output": "hard_attention"},
]


def patch_of(text_ids, **taken):
    return Patch("another", **taken).read(make_batch([text_ids], [[]], PADDING))


@pytest.mark.parametrize("choices", PATCHED, ids=str)
@pytest.mark.parametrize("padding", [PADDING, Padding("pre", "post")], ids=str)
def test_keys_values_and_state_of_another_sentence_make_its_translation(
    tiny_model, pairs, choices, padding
):
    """All that a decoder knows of its source is patched in."""
    model = tiny_model(**choices, padding=padding, scale=2.0)
    (source, other), targets = pairs((4, 4), (3, 3))
    batch = make_batch([source, other[:2]], targets, padding)  # the second is shorter
    expected = model(make_batch([other], targets[:1], padding))
    taken = {"keys": "all", "values": "all"}
    if choices.get("decoder") != "transformer":  # which has no recurrent state
        taken["state"] = True
    alone = make_batch([source], targets[:1], padding)
    found = model(alone, intervention=Intervention(patch=patch_of(other, **taken)))
    torch.testing.assert_close(found.reading.readout, expected.reading.readout, rtol=0, atol=1e-12)
    assert not torch.allclose(model(alone).reading.readout, expected.reading.readout)
    places = Intervention(patch=patch_of(other, values={1: 2}))
    in_batch = model(batch, intervention=places).reading.readout
    by_itself = model(alone, intervention=places).reading.readout
    torch.testing.assert_close(in_batch[:1], by_itself, rtol=0, atol=1e-12)


def test_patched_value_is_that_of_the_other_place_and_no_other_changes(tiny_model, pairs):
    model = tiny_model(padding=PADDING)
    (source, other), _ = pairs((4, 3), (2, 2))
    batch = make_batch([source], [[]], PADDING)
    memory, state = model.encode(batch.source, batch.source_mask)
    theirs = make_batch([other], [[]], PADDING)
    of_other, _ = model.encode(theirs.source, theirs.source_mask)
    patch = Intervention(patch=patch_of(other, values={2: 0}))
    patched, same_state = model.encode(batch.source, batch.source_mask, patch)
    assert torch.equal(patched.values[0, 2], of_other.values[0, 0])
    others = [0, 1, 3, 4]
    assert torch.equal(patched.values[0, others], memory.values[0, others])
    assert torch.equal(patched.keys, memory.keys)
    assert torch.equal(same_state.recurrent.hidden, state.recurrent.hidden)


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        ({}, "must take keys, values or the state"),
        ({"keys": "everything"}, "patch keys must be 'all' or .*, got 'everything'"),
        ({"values": [0]}, r"patch values must be 'all' or .*, got \[0\]"),
        ({"keys": {-1: 0}}, "positions from 0 on"),
        ({"values": {0: 9}}, "below 4, the tokens of 'another', got 9"),
    ],
    ids=str,
)
def test_wrong_places_of_a_patch_are_refused(taken, words):
    with pytest.raises(ValueError, match=words):
        patch_of([5, 6, 7], **taken)


@pytest.mark.parametrize(
    ("taken", "words"),
    [({"keys": "all"}, "has 3 tokens and 'another' has 4"), ({"keys": {3: 0}}, "below 3")],
    ids=str,
)
def test_patch_that_does_not_fit_a_source_is_refused(taken, words):
    with pytest.raises(ValueError, match=words):
        Intervention(patch=patch_of([5, 6, 7], **taken)).check_source(3)
