"""Gradients against finite differences, in float64: of what goes in and of every parameter."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from composed_variants import part_of, usual_first
from legal_choices import BY_POSITION, EQUAL_WIDTHS, MAKES_ITS_WEIGHTS, refusal
from one_training_step import exact_loss
from small_attentions import MASK, PARTS, B, D, H, S, T, inputs, memory_of
from torch import Tensor

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.model.attention.attention import MultiHeadAttention
from attnlab.model.attention.mechanism import LinearProjection, Mechanism
from attnlab.model.fast import speed_up
from attnlab.model.input_feeding import (
    AttentionalHiddenFeeding,
    ExpectedEmbeddingFeeding,
    SoftmaxOutputFeeding,
)
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.outputs.linear import LinearOutput
from attnlab.model.outputs.output import Reading
from attnlab.model.readouts import AttentionalReadout

SCOPES = {name: part_of("scope", name) for name in usual_first("scope")}
SCOPES["local_p_renormalised"] = part_of("scope", "local_p", renormalise=True)
# Learned straight through, or by a reward: their gradient is meant to be another one.
STRAIGHT_THROUGH = ("hard", "gumbel", "reinforce")
NORMALISERS = {
    name: part_of("normaliser", name)
    for name in usual_first("normaliser")
    if name not in STRAIGHT_THROUGH
}


def drawn(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def right(
    run: Callable[..., object], leaves: list[Tensor], *modules: torch.nn.Module, fast: bool = False
) -> bool:
    """Parameters are leaves too: gradcheck moves each where it stands, so that the modules see it.

    fast: along one random direction, not along each axis.
    """
    parameters = [parameter for module in modules for parameter in module.parameters()]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    return torch.autograd.gradcheck(
        lambda *given: run(*given[: len(leaves)]), (*leaves, *parameters), fast_mode=fast
    )


@pytest.mark.parametrize("name", PARTS)
def test_gradients_of_scores_match_finite_differences(name):
    torch.manual_seed(0)
    score, given = (
        PARTS[name](query_size=D if name in EQUAL_WIDTHS else H, key_size=D).double(),
        inputs(name),
    )
    if score.by_position:
        positions = torch.arange(S).expand(B, S)
        assert right(lambda query: score(query, positions), [given.query], score)
    else:
        run = lambda query, keys: score(query, score.finish_keys(score.project_keys(keys)))  # noqa: E731
        assert right(run, [given.query, given.outputs], score)


@pytest.mark.parametrize("name", NORMALISERS)
@pytest.mark.parametrize("masked", [True, False])
def test_gradients_of_normalisers_match_finite_differences(name, masked):
    normaliser = NORMALISERS[name]().double()
    hidden = torch.zeros(B, T, S, dtype=torch.bool) if not masked else ~MASK.unsqueeze(1)
    scores = drawn(B, T, S)
    # Some weights of a sparse normaliser are 0, and their scores have no gradient.
    assert (normaliser(scores) == 0).any() == normaliser.is_sparse
    assert right(
        lambda scores: normaliser(scores.masked_fill(hidden, -torch.inf)), [scores], normaliser
    )


def attends(mechanism: Mechanism, masked: bool = True) -> bool:
    """The whole attention, from query and encoder outputs to context and weights."""
    torch.manual_seed(0)
    attention, given = mechanism.build(H, D).double(), inputs("bahdanau")
    t = torch.arange(T).expand(B, T) + 1

    def run(query: Tensor, outputs: Tensor) -> tuple[Tensor, ...]:
        return attention(query, memory_of(attention, outputs, masked), t)

    return right(run, [given.query, given.outputs], attention, fast=True)


def remembers(mechanism: Mechanism, training: bool = False) -> bool:
    """Three steps of an attention with a history: contexts, weights, pasts and losses."""
    torch.manual_seed(0)
    attention, given = mechanism.build(H, D).double().train(training), inputs("bahdanau")

    def run(query: Tensor, outputs: Tensor) -> tuple[Tensor, ...]:
        torch.manual_seed(1)  # of noise
        memory = memory_of(attention, outputs, True)
        past = attention.first_past(memory)
        found: list[Tensor] = []
        for step in range(3):
            t = torch.full((B, 1), step)
            before = past
            context, weights, past = attention(query[:, :1] * (step + 1), memory, t, before)
            found += [context, weights]
            for number, (history, head) in enumerate(zip(attention.histories, before, strict=True)):
                if history.loss_name is not None:
                    found.append(history.loss(head, weights[:, number, 0]))
        return tuple(found)

    return right(run, [given.query, given.outputs], attention, fast=True)


@pytest.mark.parametrize(
    ("scope", "normaliser"),
    [
        (scope, normaliser)
        for scope, normaliser in itertools.product(SCOPES, NORMALISERS)
        if refusal({"scope": scope, "normaliser": normaliser}) is None
    ],
)
@pytest.mark.parametrize("masked", [True, False])
def test_gradients_of_scopes_match_finite_differences(scope, normaliser, masked):
    assert attends(
        Mechanism(PARTS["bahdanau"], NORMALISERS[normaliser], SCOPES[scope]), masked=masked
    )


@pytest.mark.parametrize(
    "name", [name for name in PARTS if name not in (*EQUAL_WIDTHS, *BY_POSITION)]
)
@pytest.mark.parametrize("history", [name for name in usual_first("history") if name != "none"])
def test_gradients_of_histories_match_finite_differences(name, history):
    """Those of monotonic attention in training, whose weights are the mean over all choices."""
    mechanism = Mechanism(
        PARTS[name], Part(Softmax), SCOPES["global"], history=part_of("history", history)
    )
    assert remembers(mechanism, training=history in MAKES_ITS_WEIGHTS)


@pytest.mark.parametrize("name", ["dot", "bahdanau", "cosine"])
def test_gradients_of_heads_and_projections_match_finite_differences(name):
    heads = Part(MultiHeadAttention, heads=2, size=3)
    projection = Part(LinearProjection, size=3)
    plain = Mechanism(PARTS[name], Part(Softmax), SCOPES["local_p"])
    assert attends(replace(plain, heads=heads))
    assert attends(replace(plain, projection=projection))


@pytest.mark.parametrize("history", ["coverage", "forward_with_agent"])
@pytest.mark.parametrize("name", ["dot", "bahdanau", "cosine"])
def test_gradients_of_histories_of_heads_match_finite_differences(name, history):
    heads = Part(MultiHeadAttention, heads=2, size=3)
    mechanism = Mechanism(
        PARTS[name],
        Part(Softmax),
        SCOPES["local_p"],
        history=part_of("history", history),
        heads=heads,
    )
    assert remembers(mechanism)


@pytest.mark.parametrize(
    ("name", "context"),
    [
        (name, size)
        for name, (size, place) in itertools.product(
            usual_first("readout"), [(0, "cell"), (D, "readout")]
        )
        if refusal({"readout": name, "decoder": ("attend_then_step", place)}) is None
    ],
)
def test_gradients_of_readouts_match_finite_differences(name, context):
    sizes = {"hidden_size": H, "context_size": context, "embedding_size": 3}
    torch.manual_seed(0)
    readout = part_of("readout", name, {"size": 3}, dropout=0.0)(**sizes).double()
    leaves = [drawn(B, H, seed=1), drawn(B, 3, seed=2), *([drawn(B, D)] if context else [])]
    assert right(
        lambda hidden, token, *c: readout(hidden, c[0] if c else None, token), leaves, readout
    )


def test_gradients_of_input_feedings_match_finite_differences():
    torch.manual_seed(0)
    sizes = {"hidden_size": H, "context_size": D, "embedding_size": 3}
    readout = AttentionalReadout(5, 0.0, **sizes)
    output = LinearOutput(readout_size=5, target_vocabulary_size=7).double()
    embedding = torch.nn.Embedding(7, 3).double()
    for kind, learned in (
        (ExpectedEmbeddingFeeding, [output, embedding]),
        (SoftmaxOutputFeeding, [output]),
        (AttentionalHiddenFeeding, []),
    ):
        feeding = Part(kind)(readout=readout, embedding_size=3, vocabulary_size=7)
        assert right(
            lambda x, feeding=feeding: feeding(Reading(x), output, embedding),
            [drawn(B, 5)],
            *learned,
        )


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend"])
def test_gradients_of_a_model_with_every_feedback_match_finite_differences(
    decoder, tiny_model, pairs
):
    """Through the steps: fed vectors, carried contexts, coverage and its loss."""
    context = (
        "cell_and_readout" if decoder == "attend_then_step" else "readout_and_previous_in_cell"
    )
    choices = {
        "decoder": decoder,
        "context": context,
        "readout": "attentional",
        "input_feeding": "attentional_hidden",
    }
    model = speed_up(tiny_model(**choices, history="coverage", scope="local_p", scale=2.0))
    batch = make_batch(*pairs((2, 1), (2, 1)), Padding())

    assert right(
        lambda *_: exact_loss(model, model(batch), batch), [], *model.children(), fast=True
    )
