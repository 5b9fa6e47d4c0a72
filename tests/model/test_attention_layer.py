"""attnlab.Attention: its contract for every part, and equality with other toolkits."""

from __future__ import annotations

import functools
import itertools
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from composed_variants import files_of, part_of, usual_first
from legal_choices import MAKES_WEIGHTS, SCORES
from small_attentions import MASK as SMALL_MASK
from small_attentions import PARTS, inputs, memory_of
from torch import Tensor, nn
from torch.nn.functional import elu

import attnlab
from attnlab.config.signature import settings_of
from attnlab.model.attention.attention import Attention as MemoryAttention
from attnlab.model.attention.layer import classes_by_name
from attnlab.model.attention.score import Score
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.scopes import GlobalScope, Scope, Window

PAGE = Path(__file__).resolve().parents[2] / "docs" / "attention_module.md"
B, T, S, H, D, E = 4, 3, 6, 5, 5, 7  # the query is as wide as the keys, for the dot score
MASK = torch.tensor([[True] * 6, [True] * 4 + [False] * 2, [False] * 3 + [True] * 3, [False] * 6])
EMPTY = 3  # the row of MASK without a real key

every_score = pytest.mark.parametrize("score", SCORES)
NORMALISERS: dict[str, Any] = {
    name: part_of("normaliser", name) for name in classes_by_name(Normaliser)
}
every_normaliser = pytest.mark.parametrize("normaliser", NORMALISERS)
every_scope = pytest.mark.parametrize("scope", usual_first("scope"))


def every_choice(test):
    choices = [
        choice
        for choice in itertools.product(SCORES, NORMALISERS, usual_first("scope"))
        # Refused: all weights would be 0, or logarithms.
        if choice[:2] not in (("uniform", "none"), ("linear_attention", "none"))
    ]
    return pytest.mark.parametrize(("score", "normaliser", "scope"), choices, ids="-".join)(test)


def made(
    score: str, normaliser: str = "softmax", scope: str = "global", **changed
) -> attnlab.Attention:
    settings = part_of("attention", score).values | part_of("scope", scope).values
    settings |= NORMALISERS[normaliser].values
    torch.default_generator.manual_seed(1)
    return attnlab.Attention(
        score,
        normaliser=normaliser,
        scope=scope,
        **settings | {"query_size": H, "key_size": D} | changed,
    ).double()


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def check_weights(weights: Tensor, normaliser: str, scope: str) -> None:
    """Zeros at pads and in the row without a real key; the others sum to one.

    Or to something else where the normaliser or the scope has it so.
    """
    assert (weights.masked_select(~MASK.unsqueeze(1).expand_as(weights)) == 0).all()
    sums = weights[:EMPTY].sum(-1)
    if NORMALISERS[normaliser].target.is_signed:
        return
    if not sum_to_one(normaliser, scope):
        assert (weights >= 0).all()
        assert (weights <= 1).all()
        return
    torch.testing.assert_close(sums, torch.ones_like(sums))


def sum_to_one(normaliser: str, scope: str) -> bool:
    # As in its paper, a predicted window multiplies the weights by a Gaussian.
    return NORMALISERS[normaliser].target.rows_sum_to_one and scope != "local_p"


QUERY, KEYS, VALUES = drawn(B, T, H), drawn(B, S, D, seed=2), drawn(B, S, E, seed=3)


@pytest.mark.parametrize(
    ("group", "kind"), [("attention", Score), ("normaliser", Normaliser), ("scope", Scope)]
)
def test_every_yaml_choice_has_its_name_in_the_layer(group, kind):
    parts = {name: part_of(group, name) for name in files_of(group)}
    targets = {name: part.target for name, part in parts.items() if part is not None}
    of_the_layer = classes_by_name(kind)
    assert len(of_the_layer) >= 2
    # A layer in somebody else's model has no training that could learn from draws.
    in_training_alone = {
        target for target in targets.values() if getattr(target, "is_drawn", False)
    }
    assert set(of_the_layer.values()) == set(targets.values()) - in_training_alone
    # Where several files set one class, one of them has its name.
    assert all(targets[name] is found for name, found in of_the_layer.items())


@pytest.mark.parametrize(
    ("group", "kind"), [("score", Score), ("normaliser", Normaliser), ("scope", Scope)]
)
def test_docs_page_lists_every_name_with_its_settings(group, kind):
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith(f"| {group} |")]
    listed = {
        re.findall(r'`"(\w+)"`', name)[0]: re.findall(r"`([a-z_]+)`", settings)
        for _, name, _, settings in rows
    }
    assert listed == {
        name: list(settings_of(found)) for name, found in classes_by_name(kind).items()
    }


@every_choice
@pytest.mark.parametrize("mask", [MASK, torch.zeros_like(MASK)], ids=["one empty row", "all empty"])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_weights_are_zero_at_pads_and_sum_to_one_and_average_the_values(
    scale, mask, score, normaliser, scope
):
    """A row without real keys gives zeros, and its gradients are zeros too."""
    attention, empty = made(score, normaliser, scope), ~mask.any(1)
    # The largest keys stand at pads: a finite score would leak there.
    large_keys = torch.where(mask.unsqueeze(2), scale, 100 * scale) * KEYS
    query, keys, values = (x.clone().requires_grad_() for x in (scale * QUERY, large_keys, VALUES))
    context, weights = attention(query, keys, values, mask)
    assert context.shape == (B, T, E)
    assert weights.shape == (B, T, S)
    assert (context[empty] == 0).all()
    assert (weights[empty] == 0).all()
    if mask is MASK:
        check_weights(weights, normaliser, scope)
    torch.testing.assert_close(context, weights @ VALUES)
    (context.square().sum() + weights.square().sum()).backward()
    for x in (query, keys, values):
        # Sparsemax may look at one key alone, and a score by position at no key: these have no
        # gradient.
        assert x.grad is None or (x.grad.isfinite().all() and (x.grad[empty] == 0).all())
    assert values.grad is not None
    assert empty.all() or values.grad[:EMPTY].abs().sum() > 0
    assert all(p.grad is None or p.grad.isfinite().all() for p in attention.parameters())


@every_choice
@pytest.mark.parametrize(("b", "t", "s"), [(1, 1, 1), (1, 3, 1), (1, 2, 5), (3, 1, 5), (1, 5, 2)])
def test_smallest_and_unequal_sizes(b, t, s, score, normaliser, scope):
    context, weights = made(score, normaliser, scope)(
        drawn(b, t, H), drawn(b, s, D, seed=2), drawn(b, s, E, seed=3)
    )
    assert (context.shape, weights.shape) == ((b, t, E), (b, t, s))
    if sum_to_one(normaliser, scope):
        torch.testing.assert_close(weights.sum(-1), torch.ones(b, t).double())


@every_choice
def test_values_default_to_the_keys_and_the_mask_to_all_keys(score, normaliser, scope):
    attention = made(score, normaliser, scope)
    context, weights = attention(QUERY, KEYS)
    expected = attention(QUERY, KEYS, KEYS, torch.ones(B, S, dtype=torch.bool))
    torch.testing.assert_close((context, weights), expected)
    torch.testing.assert_close(attention(QUERY, KEYS, VALUES)[1], weights)
    assert (context[EMPTY] != 0).any()


@every_choice
def test_pads_before_the_real_keys_change_nothing(score, normaliser, scope):
    """Also for scores and scopes by position, which count the real keys."""
    attention = made(score, normaliser, scope)
    context, weights = attention(QUERY[2:3], KEYS[2:3], VALUES[2:3], MASK[2:3])
    alone, alone_weights = attention(QUERY[2:3], KEYS[2:3, 3:], VALUES[2:3, 3:])
    torch.testing.assert_close(context, alone)
    torch.testing.assert_close(weights[:, :, 3:], alone_weights)


@pytest.mark.parametrize("name", PARTS)
def test_layer_equals_the_attention_of_the_models(name):
    given = inputs(name)
    sizes = {"query_size": given.query.shape[2], "key_size": given.outputs.shape[2]}
    model = MemoryAttention(PARTS[name](**sizes), Softmax(), GlobalScope()).double()
    layer = attnlab.Attention(name, **sizes, **PARTS[name].values).double()
    layer.attention.load_state_dict(model.state_dict())
    t = torch.arange(given.query.shape[1]).expand(len(given.query), -1)
    context, weights = model(given.query, memory_of(model, given.outputs), t)
    found = layer(given.query, given.outputs, mask=SMALL_MASK)
    assert torch.equal(found[0], context)
    assert torch.equal(found[1], weights[:, 0])


def linear(layer: nn.Linear, inputs: Tensor) -> Tensor:
    """The product of a layer's matrix and, where it has one, its bias."""
    product = torch.einsum("...i,oi->...o", inputs, layer.weight)
    return product if layer.bias is None else product + layer.bias


# score -> the formula for one query s and one key h, with the score's own parameters
FORMULAS = {
    "dot": lambda score, s, h: s @ h,
    "scaled_dot": lambda score, s, h: s @ h / H**0.5,
    "general": lambda score, s, h: s @ linear(score.W, h),
    "scaled_luong": lambda score, s, h: score.g * (s @ linear(score.W, h)),
    "cosine": lambda score, s, h: score.g * (s @ h) / (s.norm() * h.norm()),
    "concat": lambda score, s, h: score.v @ torch.tanh(linear(score.W, torch.cat([s, h]))),
    "bahdanau": lambda score, s, h: score.v @ torch.tanh(linear(score.W, s) + linear(score.U, h)),
    "linear_attention": lambda score, s, h: torch.log(
        (elu(linear(score.W, s)) + 1) @ (elu(linear(score.U, h)) + 1)
    ),
    "uniform": lambda score, s, h: torch.zeros(()).double(),
}


@pytest.mark.parametrize("score", FORMULAS)
def test_returned_scores_are_those_of_the_formula_and_minus_infinity_at_pads(score):
    attention = made(score)
    context, weights, scores = attention(QUERY, KEYS, VALUES, MASK, return_scores=True)
    assert scores.shape == (B, T, S)
    for b in range(B):
        for t in range(T):
            for s in range(S):
                expected = torch.tensor(-torch.inf).double()
                if MASK[b, s]:
                    own_score = attention.attention.score
                    expected = FORMULAS[score](own_score, QUERY[b, t], KEYS[b, s])
                torch.testing.assert_close(scores[b, t, s], expected.reshape(()))
    real = [0, 1, 2]  # the row without a real key has no weights
    torch.testing.assert_close(scores[real].softmax(-1), weights[real])
    torch.testing.assert_close((context, weights), attention(QUERY, KEYS, VALUES, MASK))


@every_choice
def test_returned_scores_make_the_weights(score, normaliser, scope):
    attention = made(score, normaliser, scope)
    _, weights, scores = attention(QUERY, KEYS, VALUES, MASK, return_scores=True)
    real = scores[:EMPTY]
    assert (scores[EMPTY] == -torch.inf).all()
    assert (weights[:EMPTY][real == -torch.inf] == 0).all()
    if scope != "local_p":  # which multiplies the weights by a Gaussian
        torch.testing.assert_close(attention.attention.normaliser(real), weights[:EMPTY])


def test_returned_scores_of_one_query_have_no_axis_of_steps():
    context, weights, scores = made("dot")(QUERY[:, 0], KEYS, mask=MASK, return_scores=True)
    assert context.shape == (B, D)
    assert scores.shape == weights.shape == (B, S)
    memory = made("dot").remember(KEYS, mask=MASK)
    hidden = memory.under(attnlab.Intervention(hide=[0]))
    _, _, found = made("dot").attend(QUERY[:, 0], hidden, return_scores=True)
    assert found[0, 0] == -torch.inf
    torch.testing.assert_close(found[0, 1:], scores[0, 1:])
    heated = memory.under(attnlab.Intervention(temperature=9.0))
    _, changed, found = made("dot").attend(QUERY[:, 0], heated, return_scores=True)
    torch.testing.assert_close(found, scores)
    assert not torch.equal(changed, weights)


def test_window_of_local_m_follows_t():
    attention = made("dot", scope="local_m", width=1)
    _, weights = attention(QUERY, KEYS, t=torch.tensor([[4, 2, 0]]).expand(B, -1))
    centres = [[3, 4, 5], [1, 2, 3], [0, 1]]
    assert [weights[0, i].nonzero().flatten().tolist() for i in range(T)] == centres
    default = attention(QUERY, KEYS)[1]
    assert [default[0, i].nonzero().flatten().tolist() for i in range(T)] == [
        [0, 1],
        [0, 1, 2],
        [1, 2, 3],
    ]
    _, by_row = attention(QUERY[:, 0], KEYS, t=torch.tensor([0, 1, 2, 9]))
    assert [row.nonzero().flatten().tolist() for row in by_row] == [
        [0, 1],
        [0, 1, 2],
        [1, 2, 3],
        [4, 5],
    ]


def test_local_p_with_renormalise_sums_to_one():
    _, weights = made("general", scope="local_p", width=2, renormalise=True)(QUERY, KEYS, mask=MASK)
    check_weights(weights, "softmax", "global")
    assert not made("general", scope="local_p", renormalise=False).attention.scope.renormalise
    assert not attnlab.Attention(
        "dot", query_size=H, scope="local_p", width=2
    ).attention.scope.renormalise


def test_projection_brings_two_widths_together():
    attention = made("dot", query_size=3, key_size=D, projection=4)
    context, weights = attention(QUERY[:, :, :3], KEYS, VALUES, MASK)
    score = attention.attention.score
    expected = (score.P(QUERY[:, :, :3]) @ score.R(KEYS).transpose(1, 2)).masked_fill(
        ~MASK[:, None], -torch.inf
    )
    torch.testing.assert_close(weights[:EMPTY], expected[:EMPTY].softmax(-1))
    assert context.shape == (B, T, E)


@pytest.mark.processor
@every_choice
def test_autocast_to_bfloat16_stays_close_and_keeps_the_contract(score, normaliser, scope):
    attention = made(score, normaliser, scope).float()
    query, keys, values = (x.float().requires_grad_() for x in (QUERY, KEYS, VALUES))
    expected, _ = attention(query, keys, values, MASK)
    with torch.autocast("cpu", torch.bfloat16):
        context, weights = attention(query, keys, values, MASK)
    assert weights.dtype == torch.float32
    assert (context[EMPTY] == 0).all()
    check_weights(weights, normaliser, scope)
    # A key at the edge of a predicted window may fall out of it, and another score be the greatest.
    if scope != "local_p" and normaliser not in ("hard", "top_k", "around_best"):
        torch.testing.assert_close(context.float(), expected, rtol=0, atol=0.1)
    with torch.autocast("cpu", torch.bfloat16):
        large_context, weights = attention(1e3 * query, 1e3 * keys, values, MASK)
    check_weights(weights, normaliser, scope)
    (context.float().square().sum() + large_context.float().square().sum()).backward()
    assert values.grad.isfinite().all()
    assert query.grad is None or query.grad.isfinite().all()


@every_choice
def test_steps_over_remembered_keys_give_the_same_as_one_call(score, normaliser, scope):
    attention = made(score, normaliser, scope)
    expected = attention(QUERY, KEYS, VALUES, MASK)
    memory = attention.remember(KEYS, VALUES, MASK)
    steps = [attention.attend(QUERY[:, t], memory, t=t) for t in range(T)]
    for found, at_once in zip(zip(*steps, strict=True), expected, strict=True):
        torch.testing.assert_close(torch.stack(found, 1), at_once)
    torch.testing.assert_close(attention(QUERY[:, 0], KEYS, VALUES, MASK), steps[0])


def test_intervention_changes_the_weights():
    attention = made("dot")
    memory = attention.remember(KEYS, VALUES, MASK).under(attnlab.Intervention("uniform", hide=[0]))
    _, weights = attention.attend(QUERY, memory)
    torch.testing.assert_close(weights[1, 0], torch.tensor([0, 1, 1, 1, 0, 0]).double() / 3)
    assert (weights[EMPTY] == 0).all()


class Scaled(Score):
    """scale s · h, with its widths among the ordinary parameters and without annotations."""

    def __init__(self, query_size, key_size, scale=2.0):
        super().__init__()
        self.projected_key_size, self.scale = key_size, scale

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.scale * (query @ keys.transpose(1, 2))


class Bare(Score):
    """s · h without a constructor."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


class FormerName(Bare):
    """Set in its constructor."""

    def __init__(self, query_size, key_size):
        super().__init__()
        self.keys_size = key_size


class FormerNameOfTheClass(Bare):
    keys_size = 4


class Sharpened(Normaliser):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, scores: Tensor) -> Tensor:
        return (self.scale * scores).softmax(-1)


class FirstOnes(Scope):
    def __init__(self, count: int, *, query_size: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        return Window(inside=(positions < self.count).unsqueeze(1))


@pytest.mark.parametrize(
    ("score", "settings"),
    [
        (Scaled, {}),
        (Scaled, {"scale": 2.0}),
        (Scaled(H, D), {}),
        (functools.partial(Scaled, scale=2.0), {}),
        (lambda query_size, key_size: Scaled(query_size, key_size), {}),
        (Bare, {"normaliser": Sharpened, "scale": 2.0}),
        (Bare(), {"normaliser": Sharpened(2.0)}),
        ("dot", {"normaliser": lambda scores: (2 * scores).softmax(-1)}),
    ],
)
def test_parts_of_ones_own_as_class_instance_or_function(score, settings):
    attention = attnlab.Attention(score, query_size=H, **settings).double()
    expected = (2 * QUERY @ KEYS.transpose(1, 2)).softmax(-1)
    torch.testing.assert_close(attention(QUERY, KEYS)[1], expected)


@pytest.mark.parametrize(
    ("scope", "settings"),
    [
        (FirstOnes, {"count": 2}),
        (FirstOnes(2, query_size=H), {}),
        (functools.partial(FirstOnes, 2), {}),
    ],
)
def test_scope_of_ones_own(scope, settings):
    _, weights = attnlab.Attention("dot", query_size=H, scope=scope, **settings)(
        QUERY, KEYS, mask=MASK
    )
    assert (weights[2, 0] > 0).tolist() == [False] * 3 + [True] * 2 + [False]


SCORE_NAMES = f"score must be one of {', '.join(sorted([*SCORES, *MAKES_WEIGHTS]))}"
SIZE = "ConcatScore: size must be a whole number above 0, got"
OTHER_SETTINGS = "is not a setting; CosineScore has: initial_scale; LocalP has: width, renormalise"
TWO_OWNERS = (
    "is a setting of Scaled and of Sharpened; give one of them as an instance or a function"
)
NO_SETTINGS = "is not a setting; the chosen parts have no settings"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"score": "bahdanua"}, ValueError, f"{SCORE_NAMES}, got 'bahdanua'"),
        ({"score": 3}, TypeError, f"{SCORE_NAMES}, or a Score of your own, got 3"),
        ({"score": nn.Linear}, TypeError, f"{SCORE_NAMES}, or a Score of your own, got <class"),
        (
            {"normaliser": "hardmax"},
            ValueError,
            "normaliser must be one of around_best, entmax, hard, learned_temperature, none, "
            "sigmoid, softmax, softmax_with_sink, sparsemax, top_k, got 'hardmax'",
        ),
        (
            {"scope": "local"},
            ValueError,
            "scope must be one of global, local_m, local_p, got 'local'",
        ),
        (
            {"score": "bahdanau"},
            ValueError,
            "BahdanauScore: size is missing; it must be a whole number above 0",
        ),
        ({"score": "concat", "size": 0}, ValueError, f"{SIZE} 0"),
        ({"score": "concat", "size": "8"}, ValueError, f"{SIZE} '8'"),
        ({"score": "concat", "sise": 8}, TypeError, "sise is not a setting; ConcatScore has: size"),
        ({"size": 8}, TypeError, f"size {NO_SETTINGS}"),
        *(
            ({"score": former, **more}, ValueError, "sets keys_size, which is called projected_key")
            for former in (FormerName, FormerNameOfTheClass)
            for more in ({}, {"projection": 4})
        ),
        ({"score": Scaled(4, 4), "scale": 8}, TypeError, f"scale {NO_SETTINGS}"),
        ({"scope": "local_p", "score": "cosine", "x": 1}, TypeError, f"x {OTHER_SETTINGS}"),
        (
            {"scope": "local_m"},
            ValueError,
            "LocalM: width is missing; it must be a whole number above 0",
        ),
        (
            {"score": Scaled, "normaliser": Sharpened, "scale": 2.0},
            TypeError,
            f"scale {TWO_OWNERS}",
        ),
        (
            {"key_size": 6},
            ValueError,
            "the dot score needs a query and keys of one width, but the query has 4 and",
        ),
        (
            {"score": "location", "max_length": 9, "projection": 4},
            ValueError,
            "scores have no keys to project",
        ),
    ],
)
def test_wrong_choice_is_refused_by_one_sentence(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        attnlab.Attention(**{"score": "dot", "query_size": 4} | arguments)
    assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="query_size"):
        attnlab.Attention("dot")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((QUERY[..., :4], KEYS), "query must be (4, T, 5) or (4, 5), got (4, 3, 4)"),
        ((QUERY[:3], KEYS), "query must be (4, T, 5) or (4, 5), got (3, 3, 5)"),
        ((QUERY[0, 0], KEYS), "query must be (4, T, 5) or (4, 5), got (5,)"),
        ((QUERY, VALUES), "keys must be (B, S, 5), got (4, 6, 7)"),
        ((QUERY, KEYS[0]), "keys must be (B, S, 5), got (6, 5)"),
        ((QUERY, KEYS, VALUES[:, 1:]), "values must be (4, 6, E) as the keys, got (4, 5, 7)"),
        ((QUERY, KEYS, None, MASK.long()), "mask must be bool, True at real keys, got torch.int64"),
        ((QUERY, KEYS, None, MASK[:, 1:]), "mask must be (4, 6) as the keys, got (4, 5)"),
    ],
)
def test_wrong_input_is_refused_by_one_sentence(arguments, message):
    with pytest.raises(TypeError if "bool" in message else ValueError, match=re.escape(message)):
        made("dot")(*arguments)


@pytest.mark.parametrize("masked", [False, True])
def test_scaled_dot_equals_torch(masked):
    context, _ = made("scaled_dot")(QUERY, KEYS, VALUES, MASK if masked else None)
    mask = MASK.unsqueeze(1) if masked else None
    expected = nn.functional.scaled_dot_product_attention(QUERY, KEYS, VALUES, attn_mask=mask)
    # Zeros in a row without a real key
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-6)


def sized(score: str) -> dict[str, int]:
    return {"size": D} if "size" in part_of("attention", score).values else {}


def copy_weights(layer: attnlab.Attention, weights: dict[str, Tensor]) -> None:
    layer.attention.score.load_state_dict(layer.attention.score.state_dict() | weights)


@pytest.fixture
def global_attention(monkeypatch):
    """OpenNMT-py's class; it also imports packages of text transforms that nothing here uses."""
    for name in ("ahocorasick", "fasttext", "spacy"):
        if name not in sys.modules:
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            "onmt.modules.global_attention", exc_type=ImportError
        ).GlobalAttention


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax"])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("dot", "dot"), ("general", "general"), ("mlp", "normed_bahdanau"), ("mlp", "bahdanau")],
)
def test_layer_equals_global_attention_of_opennmt(global_attention, theirs, ours, normaliser):
    """general: their W maps the query.

    mlp: its bias stands at the query; without it, it is Bahdanau's score.
    """
    torch.default_generator.manual_seed(2)
    peer = global_attention(D, attn_type=theirs, attn_func=normaliser).double()
    layer = attnlab.Attention(ours, query_size=D, normaliser=normaliser, **sized(ours)).double()
    if theirs == "general":
        copy_weights(layer, {"W.weight": peer.linear_in.weight.T})
    if theirs == "mlp":
        bias = peer.linear_query.bias
        copy_weights(
            layer,
            {
                "W.weight": peer.linear_query.weight,
                "U.weight": peer.linear_context.weight,
                "v": peer.v.weight[0],
            },
        )
        if ours == "normed_bahdanau":
            copy_weights(layer, {"U.bias": bias, "g": peer.v.weight.norm()})
        else:
            nn.init.zeros_(bias)
    mask = torch.arange(S) < torch.tensor([S, 4, 1]).unsqueeze(1)
    query, keys = QUERY[:3], KEYS[:3]
    context, weights = layer(query, keys, mask=mask)
    attentional, their_weights = peer(query, keys, mask.sum(1))
    torch.testing.assert_close(weights, their_weights, rtol=0, atol=1e-6)
    # Their answer is Luong's attentional hidden state
    readout = peer.linear_out(torch.cat([context, query], 2))
    torch.testing.assert_close(
        readout if theirs == "mlp" else readout.tanh(), attentional, rtol=0, atol=1e-6
    )


@pytest.fixture
def keras(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    return pytest.importorskip("keras")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("Attention", "dot"), ("Attention", "scaled_luong"), ("AdditiveAttention", "bahdanau")],
)
def test_layer_equals_keras(keras, theirs, ours):
    """use_scale of Attention is the g of scaled Luong.

    AdditiveAttention takes query and keys as they are.
    """
    peer = getattr(keras.layers, theirs)(use_scale=ours != "dot")
    query, keys, values = (x[:EMPTY].float().numpy() for x in (QUERY, KEYS, VALUES))
    peer.build([query.shape, values.shape, keys.shape])
    layer = attnlab.Attention(ours, query_size=D, **sized(ours))
    if ours == "scaled_luong":
        peer.set_weights([np.float32(0.3)])
        copy_weights(layer, {"W.weight": torch.eye(D), "g": torch.tensor(0.3)})
    if ours == "bahdanau":
        v = torch.from_numpy(np.array(peer.get_weights()[0]))
        copy_weights(layer, {"W.weight": torch.eye(D), "U.weight": torch.eye(D), "v": v})
    expected = peer(
        [query, values, keys], mask=[None, MASK[:EMPTY].numpy()], return_attention_scores=True
    )
    found = layer(*(torch.from_numpy(x) for x in (query, keys, values)), MASK[:EMPTY])
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            mine.detach().numpy(), keras.ops.convert_to_numpy(other), rtol=0, atol=1e-6
        )
