"""Histories of an attention; test_sentences holds them to their equations.

Axes: B batch, S source length.
"""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from composed_variants import part_of, usual_first
from small_attentions import B, D, H, S, inputs, memory_of
from torch import Tensor

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.attention import Attention
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.histories.forward import Forward, ForwardWithAgent, Moving
from attnlab.model.histories.history import History, Remembered
from attnlab.model.histories.location_sensitive import LocationSensitive
from attnlab.model.histories.monotonic import Monotonic, expected_weights, first_chosen
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.scopes import GlobalScope
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch

HISTORIES = [name for name in usual_first("history") if name != "none"]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def at(place: int, length: int) -> Tensor:
    return torch.eye(length, dtype=torch.float64)[place].unsqueeze(0)


def steps_of(history: str, count: int = 4, **values: object) -> list[Tensor]:
    """The weights (B, S) of some steps of an attention over sentences with pads."""
    torch.manual_seed(0)
    mechanism = Mechanism(
        Part(BahdanauScore, size=5),
        Part(Softmax),
        Part(GlobalScope),
        history=part_of("history", history, **values),
    )
    attention, given = mechanism.build(H, D).double().eval(), inputs("bahdanau")
    memory = memory_of(attention, given.outputs, True)
    past = attention.first_past(memory)
    found = []
    for step in range(count):
        t = torch.full((B, 1), step)
        _, weights, past = attention(3 * given.query[:, :1] - step, memory, t, past)
        found.append(weights[:, 0, 0].detach())
    return found


# Forward attention.


def test_forward_attention_moves_on_by_one_token_at_most():
    for name in ("forward", "forward_with_agent"):
        for step, weights in enumerate(steps_of(name)):
            reached = (weights > 0).sum(-1)
            assert (reached <= step + 2).all()
            torch.testing.assert_close(weights.sum(-1), torch.ones(B, dtype=torch.float64))


def test_forward_attention_never_goes_back():
    """From the last token, it can only stay."""
    forward = Forward()
    past = Moving(at(S - 1, S), torch.tensor([0.5], dtype=torch.float64))
    weights = forward.weigh(drawn(1, S), lambda z: z.softmax(-1), past)
    torch.testing.assert_close(weights, at(S - 1, S))


def test_forward_attention_starts_anew_where_nothing_that_may_be_seen_can_be_reached():
    scores = drawn(1, S).requires_grad_()
    hidden = torch.arange(S) < 3
    past = Moving(at(0, S), torch.tensor([0.5], dtype=torch.float64))
    masked = scores.masked_fill(hidden, -torch.inf)
    weights = Forward().weigh(masked, lambda z: z.softmax(-1), past)
    torch.testing.assert_close(weights, masked.softmax(-1))
    (weights * drawn(1, S, seed=1)).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("scale", [10, 30, 100])
def test_forward_attention_has_finite_gradients_where_the_scores_draw_it_elsewhere(scale):
    """Step by step, almost all that the normaliser sees is out of reach."""
    scores = (scale * drawn(25, 4, 30)).float().requires_grad_()
    factors = drawn(25, 4, 30, seed=1).float()
    start = at(0, 30).float().expand(4, 30)
    forward, past, total = Forward(), Moving(start, torch.full((4,), 0.5)), torch.tensor(0.0)
    for of_step, factor in zip(scores, factors, strict=True):
        weights = forward.weigh(of_step, lambda z: z.softmax(-1), past)
        total = total + (weights * factor).sum()
        past = Moving(weights, past.transition)
    total.backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad.any()


@pytest.mark.parametrize(("u", "place"), [(0.0, 1), (1.0, 2)])
def test_transition_says_whether_forward_attention_stays_or_moves(u, place):
    past = Moving(at(1, S), torch.tensor([u], dtype=torch.float64))
    weights = Forward().weigh(drawn(1, S), lambda z: z.softmax(-1), past)
    torch.testing.assert_close(weights, at(place, S))


def test_agent_learns_from_the_next_step_alone():
    agent = ForwardWithAgent(size=4, query_size=H, value_size=D).double()
    past = Moving(at(0, S), torch.tensor([0.5], dtype=torch.float64))
    after = agent.after(past, drawn(1, H), drawn(1, D), at(0, S))
    weights = agent.weigh(drawn(1, S), lambda z: z.softmax(-1), after)
    weights[0, 1].backward()
    assert all(
        parameter.grad is not None and parameter.grad.any() for parameter in agent.parameters()
    )


# Monotonic attention.


def test_expected_weights_are_those_of_reading_on_and_stopping_by_chance():
    """The mean over many readings, each of which stops at a token with its probability."""
    energy, start = drawn(1, 6), torch.tensor([[0.3, 0.5, 0.0, 0.2, 0.0, 0.0]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    readings = 100_000
    begins = torch.multinomial(start[0], readings, replacement=True, generator=generator)
    stops = torch.rand(readings, 6, generator=generator, dtype=torch.float64) < energy.sigmoid()
    stops &= torch.arange(6) >= begins.unsqueeze(1)
    first = stops & (stops.cumsum(-1) == 1)
    expected = expected_weights(energy, start)
    torch.testing.assert_close(expected[0], first.double().mean(0), rtol=0, atol=0.005)
    assert expected.sum() < 1  # some readings come to the end


def test_sure_choices_are_expected_where_they_are_chosen():
    """Where each p is nearly 0 or 1, the mean over all readings is that of the search."""
    for seed in range(20):
        energy = 60 * drawn(3, 8, seed=seed).sign()
        before = torch.cat([at(place, 8) for place in (0, 3, 7)])
        torch.testing.assert_close(expected_weights(energy, before), first_chosen(energy, before))


def test_expected_weights_of_a_long_sentence_neither_underflow_nor_overflow():
    """A quotient of products, as in the paper's equation 10, loses all weights here."""
    energy = torch.full((1, 400), 2.0)
    energy[0, :300] = -torch.inf  # hidden
    before = torch.zeros(1, 400)
    before[0, 0] = 1
    weights = expected_weights(energy.requires_grad_(), before)
    p = torch.tensor(2.0).sigmoid()
    torch.testing.assert_close(weights[0, 300:303], p * (1 - p) ** torch.arange(3))
    weights.sum().backward()
    assert energy.grad is not None
    assert energy.grad.isfinite().all()


def test_expected_weights_keep_single_precision_under_autocast():
    """Half precision would lose a part of the weights at every step."""
    energy, before = drawn(2, 40).float(), drawn(2, 40, seed=1).float().softmax(-1)
    with torch.autocast("cpu", torch.bfloat16):
        found = expected_weights(energy, before)
    torch.testing.assert_close(found, expected_weights(energy, before), rtol=1e-6, atol=1e-7)


def test_reading_that_came_to_the_end_sees_nothing_any_more():
    nothing = torch.zeros(1, 4)
    assert first_chosen(torch.ones(1, 4), nothing).sum() == 0
    assert first_chosen(-torch.ones(1, 4), torch.eye(4)[:1]).sum() == 0


def test_hard_choice_reads_on_from_a_weight_that_a_local_scope_has_lowered():
    lowered = torch.tensor([[0.0, 0.3, 0.0, 0.0]])
    energy = torch.tensor([[1.0, -1.0, 1.0, 1.0]])
    assert first_chosen(energy, lowered).tolist() == [[0, 0, 1, 0]]


def test_noise_is_for_training_alone():
    monotonic = Monotonic(initial_bias=0.0, noise=1.0, hard=False).double()
    scores, past = drawn(1, S), Remembered(at(0, S))

    def weights() -> Tensor:
        return monotonic.weigh(scores, lambda z: z, past)

    monotonic.eval()
    torch.testing.assert_close(weights(), expected_weights(scores, at(0, S)))
    monotonic.train()
    assert not torch.equal(weights(), weights())


def test_hard_choices_are_monotonic():
    steps = steps_of("monotonic", count=6)
    for before, after in itertools.pairwise(steps):
        looks = after.sum(-1) == 1
        assert (after.argmax(-1) >= before.argmax(-1))[looks].all()
    assert sum(int(weights.sum()) for weights in steps) > len(steps)


# All of them.


@pytest.mark.parametrize("history", [*HISTORIES, "soft_monotonic"])
def test_weights_that_are_set_are_remembered(history, tiny_model, pairs):
    """An intervention changes what the steps after it know."""
    model = tiny_model(history=history, scale=3.0)
    batch = make_batch(*pairs((3, 3), (5, 5)), Padding())
    plain = model(batch).attention_weights
    given = Intervention(weights={1: [0.0, 0.0, 0.0, 1.0]})
    changed = model(batch, intervention=given).attention_weights
    torch.testing.assert_close(changed[:, 0], plain[:, 0])
    assert (changed[:, 1, -1] == 1).all()
    assert not torch.allclose(changed[:, 2:], plain[:, 2:])


@pytest.mark.parametrize("history", HISTORIES)
def test_beam_of_one_is_greedy_and_a_sentence_is_the_same_in_a_batch_and_alone(
    history, tiny_model, pairs
):
    model = tiny_model(history=history, heads=2, scale=3.0)
    batch = make_batch(*pairs((4, 2, 3), (1, 1, 1)), Padding())
    greedy = GreedySearch(6)(model, batch.source, batch.source_mask)
    beam = BeamSearch(1, 0.0, 6)(model, batch.source, batch.source_mask)
    wide = BeamSearch(4, 0.0, 6)(model, batch.source, batch.source_mask)
    assert [best[0].tokens for best in greedy] == [best[0].tokens for best in beam]
    for row, mask in enumerate(batch.source_mask):
        alone = batch.source[row : row + 1, mask]
        everything = torch.ones_like(alone, dtype=torch.bool)
        (found,) = BeamSearch(4, 0.0, 6)(model, alone, everything)
        assert found[0].tokens == wide[row][0].tokens


def test_record_is_selected_field_by_field():
    past = Moving(drawn(3, S), torch.tensor([0.1, 0.2, 0.3]))
    chosen = past.select(torch.tensor([2, 2, 0]))
    assert isinstance(chosen, Moving)
    assert chosen.transition.tolist() == pytest.approx([0.3, 0.3, 0.1])
    assert torch.equal(chosen.weights, past.weights[[2, 2, 0]])
    assert {field.name for field in dataclasses.fields(chosen)} == {"weights", "transition"}


def test_even_filters_are_refused():
    with pytest.raises(ValueError, match=r"filter_width must be odd.*got 4; choose 3 or 5"):
        LocationSensitive(filters=2, filter_width=4, key_size=3)


def test_normaliser_beside_a_history_that_makes_its_weights_is_refused(tiny_model):
    with pytest.raises(ExperimentError, match="so that Sparsemax would do nothing; leave model/"):
        tiny_model(history="monotonic", normaliser="sparsemax")


def test_weights_need_not_sum_to_one_under_monotonic_attention_alone():
    score = BahdanauScore(size=3, query_size=H, key_size=D)
    for name in HISTORIES:
        history = part_of("history", name)
        assert history is not None
        built = history(query_size=H, key_size=3, value_size=D)
        attention = Attention(score, Softmax(), GlobalScope(), built)
        assert attention.rows_sum_to_one == (name != "monotonic")


@dataclasses.dataclass(frozen=True)
class Asked(Remembered):
    sharpness: Tensor  # (B, 1)


class SharpAsAsked(History[Asked]):
    """weights = normalise(s · scores), with s = exp(v · query) of the same step."""

    def __init__(self, *, query_size: int) -> None:
        super().__init__()
        self.v = torch.nn.Linear(query_size, 1, bias=False)

    def first(self, memory):
        return Asked(torch.zeros(memory.mask.shape), torch.zeros(len(memory.mask), 1))

    def before(self, past, query):
        return dataclasses.replace(past, sharpness=self.v(query).exp())

    def weigh(self, scores, normalise, past):
        return normalise(past.sharpness * scores)

    def after(self, past, query, context, weights):
        return dataclasses.replace(past, weights=weights)


def test_history_weighs_by_the_query_of_its_step():
    torch.manual_seed(0)
    mechanism = Mechanism(
        Part(BahdanauScore, size=5), Part(Softmax), Part(GlobalScope), history=Part(SharpAsAsked)
    )
    attention, given = mechanism.build(H, D).double(), inputs("bahdanau")
    memory = memory_of(attention, given.outputs, True)
    past = attention.first_past(memory)
    for step in range(2):
        query = given.query[:, step : step + 1]
        t = torch.full((B, 1), step)
        scores, _ = attention.scores(query, memory, t)
        _, weights, past = attention(query, memory, t, past)
        sharpness = attention.history.v(query[:, 0]).exp()
        expected = (sharpness * scores[:, 0]).softmax(-1)
        torch.testing.assert_close(weights[:, 0, 0], expected, rtol=0, atol=1e-12)
