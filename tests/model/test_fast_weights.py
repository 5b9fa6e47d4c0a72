"""Attention as a memory of fast weights: linear attention and the delta rule.

Axes: B batch, T target, S source, H query, D values, A features.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import paper_equations as paper
import pytest
import torch
from composed_variants import part_of, usual_first
from small_attentions import MASK, PARTS, WEIGHING, B, D, H, S, T, inputs, memory_of
from torch import Tensor
from torch.nn.functional import elu

import attnlab
from attnlab.config.part import Part
from attnlab.errors import ExperimentError
from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.linear_attention import LinearAttentionScore
from attnlab.model.attention.mechanism import LinearProjection, Mechanism
from attnlab.model.attention.memory import count_positions
from attnlab.model.attention.score import Score
from attnlab.model.fast import speed_up
from attnlab.model.histories.forward import Forward
from attnlab.model.normalisers.none import NoneNormaliser
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.scopes import GlobalScope, LocalP
from attnlab.training.attention_losses.attention_loss import check_signs
from attnlab.training.attention_losses.entropy import Entropy
from attnlab.training.attention_losses.guided_alignment import GuidedAlignment

STEPS = torch.arange(T).expand(B, T)


def built(name: str) -> Score:
    torch.manual_seed(0)
    return (PARTS | WEIGHING)[name](query_size=H, key_size=D).double()


def phi(x: Tensor) -> Tensor:
    return elu(x) + 1


def test_context_of_linear_attention_is_read_from_one_matrix():
    """Katharopoulos et al. 2020, equations 16 to 20: the source is written token by token."""
    score, given = built("linear_attention"), inputs("linear_attention")
    attention = Attention(score, Softmax(), GlobalScope())
    context, _ = attention(given.query, memory_of(attention, given.outputs), STEPS)
    for b in range(B):
        matrix, norm = torch.zeros(7, D).double(), torch.zeros(7).double()
        for h in given.outputs[b][MASK[b]]:
            features = phi(score.U(h))
            matrix = matrix + features.outer(h)
            norm = norm + features
        for t in range(T):
            query = phi(score.W(given.query[b, t]))
            expected = (query @ matrix) / (query @ norm)
            torch.testing.assert_close(context[b, t], expected, rtol=0, atol=1e-10)


def with_identities(size: int) -> LinearAttentionScore:
    """The score of vectors as they are."""
    score = LinearAttentionScore(size, query_size=size, key_size=size)
    with torch.no_grad():
        for layer in (score.W, score.U):
            layer.weight.copy_(torch.eye(size))
    return score


def exact(query: Tensor, keys: Tensor) -> Tensor:
    """log(phi(q) · phi(k)) in float64, by sums of powers that cannot underflow."""
    of_query, of_keys = (
        torch.where(x > 0, x.clamp(min=0).log1p(), x).double() for x in (query, keys)
    )
    return (of_query.unsqueeze(2) + of_keys.unsqueeze(1)).logsumexp(-1)


@pytest.mark.parametrize("middle", [-1000.0, -60.0, 0.0, 60.0, 1e12])
def test_linear_attention_is_exact_for_vectors_of_any_size(middle):
    random = torch.Generator().manual_seed(0)
    query, keys = (middle + 5 * torch.randn(2, n, 6, generator=random) for n in (3, 4))
    query.requires_grad_()
    score = with_identities(6)
    found = score(query, score.finish_keys(score.project_keys(keys)))
    torch.testing.assert_close(found.double(), exact(query, keys), rtol=1e-6, atol=1e-5)

    (gradient,) = torch.autograd.grad(found.sum(), query)
    (expected,) = torch.autograd.grad(exact(query, keys).sum(), query)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


def test_linear_attention_of_products_below_any_float_is_finite():
    score = with_identities(2)
    query, keys = torch.tensor([[[0.0, -300.0]]]), torch.tensor([[[-300.0, 0.0], [0.0, 0.0]]])
    found = score(query, score.finish_keys(keys))[0, 0]
    assert found.isfinite().all()
    assert found.softmax(-1)[0] < 1e-30


@pytest.mark.processor
def test_linear_attention_keeps_its_weights_in_half_precision():
    random = torch.Generator().manual_seed(0)
    query, keys = (2 * torch.randn(4, n, 64, generator=random) for n in (3, 9))
    score = with_identities(64)
    with torch.autocast("cpu", torch.bfloat16):
        found = score(query, score.finish_keys(score.project_keys(keys)))
    assert found.dtype == torch.float32
    wanted = exact(query, keys).softmax(-1)
    assert (found.softmax(-1) - wanted).abs().max() < 0.02 * wanted.max()


def test_gradient_of_linear_attention_at_zero_is_that_of_both_sides():
    """phi is smooth at 0, where the vector of a pad is."""
    score = with_identities(3).double()
    query = torch.randn(1, 1, 3, generator=torch.Generator().manual_seed(0)).double()
    keys = torch.zeros(1, S, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda keys: score(query, score.finish_keys(keys)), [keys])


DELTA = Mechanism(WEIGHING["delta_rule"], Part(NoneNormaliser), Part(GlobalScope))
DELTAS = {
    "plain": DELTA,
    "projected": dataclasses.replace(DELTA, projection=Part(LinearProjection, size=3)),
    "heads": dataclasses.replace(DELTA, heads=Part(MultiHeadAttention, heads=2, size=3)),
}


def delta_rule() -> Attention:
    return Attention(built("delta_rule"), NoneNormaliser(), GlobalScope())


def test_delta_rule_has_the_weights_of_its_recurrence():
    """With one-hot values, in NumPy; all tokens of a row write, in their order."""
    score, given = built("delta_rule"), inputs("delta_rule")
    found = score(given.query, score.project_keys(given.outputs)).detach()
    w = paper.weights_of(score)
    for b, t in np.ndindex(B, T):
        keys, query = given.outputs[b].numpy(), given.query[b, t].numpy()
        expected = paper.delta_rule(w, query, keys, np.zeros((S, 1)))
        np.testing.assert_allclose(found[b, t], expected, rtol=0, atol=1e-10)


def test_context_of_the_delta_rule_is_read_from_one_matrix_and_so_are_its_gradients():
    """Schlag et al. 2021, section 4.2: each real token corrects what its key reads."""
    attention, given = delta_rule(), inputs("delta_rule")
    score = attention.score
    given.query.requires_grad_()
    given.outputs.requires_grad_()
    context, weights = attention(given.query, memory_of(attention, given.outputs), STEPS)
    contexts = []
    for b in range(B):
        matrix = torch.zeros(D, 7).double()
        for h in given.outputs[b][MASK[b]]:
            k = score.U(h) / score.U(h).norm()
            matrix = matrix + score.w(h).sigmoid() * (h - matrix @ k).outer(k)
        contexts.append(score.W(given.query[b]) @ matrix.T)
    expected = torch.stack(contexts)
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-10)
    assert (weights[:, 0].masked_select(~MASK.unsqueeze(1)) == 0).all()
    assert (weights < 0).any()

    leaves = [given.query, given.outputs, *score.parameters()]
    direction = torch.randn(B, T, D, generator=torch.Generator().manual_seed(3)).double()
    ours = torch.autograd.grad((context * direction).sum(), leaves)
    theirs = torch.autograd.grad((expected * direction).sum(), leaves)
    for found, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("name", DELTAS)
def test_gradients_of_the_delta_rule_match_finite_differences(name, masked):
    torch.manual_seed(0)
    attention, given = DELTAS[name].build(H, D).double(), inputs("delta_rule")
    given.query.requires_grad_()
    given.outputs.requires_grad_()

    def run(query: Tensor, outputs: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        return attention(query, memory_of(attention, outputs, masked), STEPS)

    assert torch.autograd.gradcheck(run, [given.query, given.outputs, *attention.parameters()])


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("behind", [0, 2])
@pytest.mark.parametrize("name", DELTAS)
def test_pads_write_nothing_into_the_matrix(name, behind, before):
    torch.manual_seed(0)
    attention, given = DELTAS[name].build(H, D).double(), inputs("delta_rule")
    pads = lambda n: torch.randn(B, n, D).double()  # noqa: E731
    padded = torch.cat([pads(before), given.outputs, pads(behind)], dim=1)
    mask = torch.zeros(padded.shape[:2], dtype=torch.bool)
    mask[:, before : before + S] = True
    keys, values = attention.project(padded, count_positions(mask), mask)
    alone, alone_values = attention.project(given.outputs, torch.arange(S).expand(B, S))
    real = slice(before, before + S)
    torch.testing.assert_close(keys[..., real, :], alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(values[..., real, :], alone_values)
    assert (keys[..., :before, :] == 0).all()
    assert (keys[..., before + S :, :] == 0).all()

    unmasked, _ = attention.project(padded, count_positions(mask))
    if behind:  # what is written later changes what the tokens before it can be read by
        assert not torch.allclose(unmasked[..., real, :], alone)


@pytest.mark.parametrize("name", DELTAS)
def test_sped_up_delta_rule_projects_the_same_keys(name):
    torch.manual_seed(0)
    attention, outputs = DELTAS[name].build(H, D), inputs("delta_rule").outputs.float()
    plain, _ = attention.project(outputs, count_positions(MASK), MASK)
    fast, _ = speed_up(attention).project(outputs, count_positions(MASK), MASK)
    torch.testing.assert_close(fast, plain)


@pytest.mark.processor
def test_delta_rule_is_solved_in_single_precision_under_autocast():
    """64 tokens whose keys are nearly one: in half precision the errors would add up."""
    torch.manual_seed(0)
    score = WEIGHING["delta_rule"](query_size=H, key_size=D)
    keys = torch.ones(1, 64, D) + 0.1 * torch.randn(1, 64, D)
    exact = score.double().project_keys(keys.double())
    with torch.autocast("cpu", torch.bfloat16):
        found = score.float().project_keys(keys)
    assert (found.double() - exact).abs().max() < 0.02 * exact.abs().max()


def test_source_written_last_is_read_back_where_beta_is_one():
    """The delta rule replaces what a key read, where a sum would mix both values."""
    score = built("delta_rule")
    with torch.no_grad():
        score.w.weight.fill_(1e3)  # beta = 1 of positive vectors
    h = torch.rand(1, 1, D).double() + 0.1
    keys = score.project_keys(h.expand(1, 3, D))
    unit = score.U(h[0, 0]) / score.U(h[0, 0]).norm()
    read = (keys[0] @ unit).detach()
    torch.testing.assert_close(read, torch.tensor([0.0, 0.0, 1.0]).double())


@pytest.mark.parametrize(
    "given",
    [
        {"score": WEIGHING["delta_rule"], "normaliser": Part(Softmax, "the.path")},
        {"scope": Part(LocalP, "the.path", width=2, renormalise=True)},
        {"history": Part(Forward, "the.path")},
    ],
)
def test_refusal_of_signs_begins_with_the_path_of_the_part_at_fault(given):
    usual = {
        "score": PARTS["general"],
        "normaliser": Part(NoneNormaliser),
        "scope": Part(GlobalScope),
    }
    with pytest.raises(ExperimentError, match=r"^the\.path: "):
        Mechanism(**(usual | given)).build(query_size=H, value_size=D)


@pytest.mark.parametrize(
    "normaliser", [name for name in usual_first("normaliser") if name != "none"]
)
def test_delta_rule_refuses_every_other_normaliser(normaliser):
    with pytest.raises(ValueError, match="makes weights of any sign by itself, which normaliser"):
        Attention(built("delta_rule"), part_of("normaliser", normaliser)(), GlobalScope())
    projected = LinearProjection(3, score=WEIGHING["delta_rule"], query_size=H, key_size=D)
    with pytest.raises(ValueError, match="choose model/normaliser=none"):
        Attention(projected, part_of("normaliser", normaliser)(), GlobalScope())


def test_delta_rule_of_zero_vectors_writes_nothing_and_has_finite_gradients():
    """As of pads that no recurrence reads, where the attention may weigh them."""
    score, given = built("delta_rule"), inputs("delta_rule")
    outputs = given.outputs.clone()
    outputs[:, 1] = 0
    outputs.requires_grad_()
    keys = score.project_keys(outputs)
    assert (keys[:, 1] == 0).all()
    without = score.project_keys(outputs[:, [0, 2, 3, 4]])
    torch.testing.assert_close(keys[:, [0, 2, 3, 4]], without, rtol=0, atol=1e-12)
    (gradient,) = torch.autograd.grad(keys.sum(), outputs)
    assert gradient.abs().max() < 1e3


def test_layer_has_the_delta_rule_by_its_name():
    torch.manual_seed(0)
    layer = attnlab.Attention("delta_rule", query_size=H, key_size=D, size=7, normaliser="none")
    mask = MASK.clone()
    mask[1] = False
    given = inputs("delta_rule")
    context, weights = layer.double()(given.query, given.outputs, mask=mask)
    assert (context[1] == 0).all()
    assert (weights[0] != 0).all()
    with pytest.raises(ValueError, match=r'of attnlab.Attention: normaliser="none"'):
        attnlab.Attention("delta_rule", query_size=H, key_size=D, size=7)


@pytest.mark.parametrize("projection", [None, 5])
def test_logarithms_of_linear_attention_are_no_weights(projection, tiny_model):
    choices = {"attention": "linear_attention", "projection": projection}
    words = "scores of this model/attention are logarithms, .*NoneNormaliser .*normaliser=softmax"
    with pytest.raises(ExperimentError, match=words):
        tiny_model(**choices, normaliser="none")
    with pytest.raises(ValueError, match="are logarithms"):
        attnlab.Attention("linear_attention", query_size=4, size=4, normaliser="none")


def test_what_needs_weights_above_zero_refuses_weights_of_any_sign():
    score = built("general")
    with pytest.raises(ValueError, match="a renormalised window would divide by a sum near 0"):
        Attention(score, NoneNormaliser(), LocalP(2, True, query_size=H))
    sizes = {"query_size": H, "key_size": 7, "value_size": D}
    for history in ("coverage", "forward", "forward_with_agent"):
        part = part_of("history", history)
        with pytest.raises(ValueError, match="needs weights that are at least 0"):
            Attention(score, NoneNormaliser(), GlobalScope(), part(**sizes))
    without_loss = part_of("history", "coverage", loss_weight=0)(**sizes)
    assert Attention(score, NoneNormaliser(), GlobalScope(), without_loss).history is without_loss

    signed, usual = Part(NoneNormaliser), Part(Softmax)
    (problem,) = check_signs(Entropy(1.0), signed)
    assert "needs weights that are at least 0, but those of NoneNormaliser may be" in problem
    assert check_signs(GuidedAlignment(1.0, "product", "sure"), signed) != []
    assert check_signs(GuidedAlignment(1.0, "squared", "sure"), signed) == []
    assert check_signs(Entropy(1.0), usual) == check_signs(None, signed) == []
