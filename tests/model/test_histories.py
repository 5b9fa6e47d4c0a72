"""Histories of an attention; test_sentences holds them to their equations.

Axes: B batch, S source length.
"""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from composed_variants import part_of, usual_first
from legal_choices import MAKES_ITS_WEIGHTS
from small_attentions import B, D, H, S, inputs, memory_of
from torch import Tensor

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.attention import Attention, remember
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.decoders.step import Token
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.histories.forward import Forward, ForwardWithAgent, Moving
from attnlab.model.histories.history import History, Remembered
from attnlab.model.histories.location_sensitive import LocationSensitive
from attnlab.model.histories.mocha import InChunks, Mocha, chunk_weights
from attnlab.model.histories.monotonic import Monotonic, expected_weights, first_chosen
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.recurrence import RecurrentState
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


@pytest.mark.parametrize("tokens", [1, 2, 3, 7, 8, 9, 100])
def test_expected_weights_follow_the_recurrence_of_the_paper(tokens):
    """Equations 6 to 9, token by token, gradients too."""
    energy, before = drawn(3, tokens), drawn(3, tokens, seed=1).softmax(-1)

    def token_by_token(energy, before):
        p = energy.sigmoid()
        weights, q = [], torch.zeros(3, dtype=torch.float64)
        for i in range(tokens):
            passed_on = (1 - p[:, i - 1]) * q if i > 0 else q
            q = passed_on + before[:, i]
            weights.append(p[:, i] * q)
        return torch.stack(weights, dim=1)

    found = []
    for weigh in (expected_weights, token_by_token):
        given = energy.clone().requires_grad_(), before.clone().requires_grad_()
        weights = weigh(*given)
        gradients = torch.autograd.grad((weights * drawn(3, tokens, seed=2)).sum(), given)
        found.append((weights.detach(), *gradients))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-13)


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


# Monotonic chunkwise attention.


def softmax_of_chunk(energies: Tensor, end: int, chunk_size: int) -> Tensor:
    """(S,): the softmax of the tokens up to one, 0 elsewhere."""
    weights = torch.zeros_like(energies)
    begin = max(end - chunk_size + 1, 0)
    powers = energies[begin : end + 1].exp()
    weights[begin : end + 1] = powers / powers.sum()
    return weights


def enumerated(p: Tensor, energies: Tensor, chunk_size: int) -> Tensor:
    """The mean weights (T, S) over all paths of T steps that never go back.

    p and energies are (T, S). A step may also come to the end, and then all others do.
    """
    steps, length = p.shape
    mean = torch.zeros_like(p)
    for path in itertools.product(range(length + 1), repeat=steps):
        probability, start = 1.0, 0
        for t, stop in enumerate(path):
            if stop < start:
                probability = 0.0
                break
            for passed in range(start, stop):
                probability *= 1 - p[t, passed].item()
            if stop < length:
                probability *= p[t, stop].item()
            start = stop
        for t, stop in enumerate(path):
            if stop < length:
                mean[t] += probability * softmax_of_chunk(energies[t], stop, chunk_size)
    return mean


class ChunkwiseSteps:
    """Steps of chunkwise attention over one sentence, of scores and queries that are drawn."""

    def __init__(self, steps: int, length: int, **values: object) -> None:
        torch.manual_seed(0)
        settings = {"initial_bias": 0.3, "noise": 0.0, "hard": False, "chunk_size": 3, "size": 5}
        self.history = Mocha(**settings | values, query_size=H, value_size=D).double().eval()
        self.scores = drawn(steps, 1, length)
        self.queries = drawn(steps, 1, H, seed=1)
        self.values = drawn(1, length, D, seed=2)
        attention = Attention(BahdanauScore(3, query_size=H, key_size=D), Softmax(), GlobalScope())
        everything = torch.ones(1, length, dtype=torch.bool)
        encoded = Encoded(self.values, RecurrentState(self.values[:, -1].unsqueeze(0)))
        self.memory = remember(encoded, everything, True, attention.double())

    @property
    def p(self) -> Tensor:
        return (self.scores[:, 0] + self.history.r).sigmoid().detach()

    @property
    def energies(self) -> Tensor:
        score = self.history.chunk_score
        hidden = torch.tanh(score.W(self.queries) + score.U(self.values))  # (T, S, A)
        return (hidden @ score.v).detach()

    def weights(self) -> Tensor:
        """(T, S)."""
        past, found = self.history.first(self.memory), []
        for scores, query in zip(self.scores, self.queries, strict=True):
            past = self.history.read_scores(self.history.before(past, query), scores)
            found.append(self.history.weigh(scores, lambda z: z, past)[0])
            past = self.history.after(past, query, drawn(1, D), found[-1].unsqueeze(0))
        return torch.stack(found).detach()


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 9])
def test_expected_chunk_weights_are_the_mean_over_all_monotonic_paths(chunk_size):
    steps = ChunkwiseSteps(4, 4, chunk_size=chunk_size)
    weights = steps.weights()
    wanted = enumerated(steps.p, steps.energies, chunk_size)
    torch.testing.assert_close(weights, wanted, rtol=0, atol=1e-12)
    assert (weights.sum(-1) < 1).all()  # some readings come to the end


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 12])
def test_hard_choice_has_the_softmax_of_the_chunk_up_to_it(chunk_size):
    steps = ChunkwiseSteps(12, 7, chunk_size=chunk_size, hard=True, initial_bias=0.6)
    stop, ends = 0, []
    for t, found in enumerate(steps.weights()):
        while stop < 7 and steps.p[t, stop] < 0.5:
            stop += 1
        wanted = torch.zeros(7, dtype=torch.float64)
        if stop < 7:
            wanted = softmax_of_chunk(steps.energies[t], stop, chunk_size)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
        ends.append(stop)
    assert ends[0] < 3 < ends[-1] == 7  # a step has come to the end, where all weights are 0


def test_chunks_of_one_token_are_monotonic_attention():
    for hard in (False, True):
        steps = ChunkwiseSteps(5, 6, chunk_size=1, hard=hard)
        monotonic = Monotonic(0.3, 0.0, hard).double().eval()
        past = Remembered(at(0, 6))
        for scores, found in zip(steps.scores, steps.weights(), strict=True):
            past = Remembered(monotonic.weigh(scores, lambda z: z, past))
            torch.testing.assert_close(found, past.weights[0])


def test_chunks_leave_out_hidden_tokens():
    energies = torch.tensor([[5.0, -torch.inf, 2.0, 1.0, -torch.inf]], dtype=torch.float64)
    for stop, seen in ((0, [0]), (2, [0, 2]), (3, [2, 3])):
        wanted = torch.zeros(5, dtype=torch.float64)
        wanted[seen] = energies[0, seen].softmax(-1)
        torch.testing.assert_close(chunk_weights(at(stop, 5), energies, 3)[0], wanted)


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e30])
def test_chunk_weights_of_large_energies_are_finite_and_sum_to_one(scale):
    """exp(u) alone, as in the paper's moving sums, overflows or divides 0 by 0 here."""
    energies = (scale * drawn(2, 50)).float().requires_grad_()
    stops = drawn(2, 50, seed=1).float().softmax(-1).requires_grad_()
    hidden = torch.arange(50) < 20
    seen = energies.masked_fill(hidden, -torch.inf)
    weights = chunk_weights(stops.masked_fill(hidden, 0), seen, 8)
    torch.testing.assert_close(weights.sum(-1), stops.masked_fill(hidden, 0).sum(-1))
    (weights * drawn(2, 50, seed=2).float()).sum().backward()
    for given in (energies, stops):
        assert given.grad is not None
        assert given.grad.isfinite().all()


def test_chunk_weights_keep_single_precision_under_autocast():
    energies, stops = drawn(2, 40).float(), drawn(2, 40, seed=1).float().softmax(-1)
    with torch.autocast("cpu", torch.bfloat16):
        found = chunk_weights(stops, energies, 5)
    torch.testing.assert_close(found, chunk_weights(stops, energies, 5), rtol=0, atol=0)


def test_chunkwise_reading_goes_on_from_its_stop_and_not_from_what_it_saw_most():
    """The first token has nearly all the weight of the chunk that ends at the third."""
    stops, energies = at(2, 5), torch.tensor([[9.0, 0, 0, 0, 0]], dtype=torch.float64)
    history = Mocha(0.0, 0.0, hard=True, chunk_size=3, size=2, query_size=H, value_size=D).eval()
    past = InChunks(stops, drawn(1, 5, 2), energies)
    weights = history.weigh(torch.zeros(1, 5), lambda z: z, past)
    assert weights.argmax() == 0
    after = history.after(past, drawn(1, H), drawn(1, D), weights)
    scores = torch.tensor([[1.0, 1, -1, 1, 1]], dtype=torch.float64)
    assert history.read_scores(after, scores).weights.tolist() == at(3, 5).tolist()


def test_chunkwise_reading_goes_on_from_its_stop_beneath_a_local_scope(tiny_model, pairs):
    """A local-p window makes the weights smaller, and not what is likely to come by."""
    choices = {"history": "soft_mocha", "scope": "local_p", "decoder": "step_then_attend"}
    model = tiny_model(**choices, context="readout")
    batch = make_batch(*pairs((3,), (5,)), Padding())
    memory, state = model.encode(batch.source, batch.source_mask)
    for _ in range(3):
        token = Token(model.decoder.body.embed(torch.tensor([5])))
        output, state = model.decoder.step(token, state, memory)
        assert output.attention_weights.sum() < state.past[0].weights.sum()


def test_record_of_chunks_follows_the_rows_of_a_search():
    past = InChunks(drawn(3, S), drawn(3, S, 2), drawn(3, S, seed=1))
    rows = torch.tensor([2, 0, 2])
    chosen = past.select(rows)
    for name in ("weights", "projected", "energies"):
        assert torch.equal(getattr(chosen, name), getattr(past, name)[rows])


@pytest.mark.parametrize(
    ("change", "is_set"),
    [
        (Intervention(weights={1: [0.0, 0.0, 1.0, 0.0]}), True),
        (Intervention(kind="uniform"), True),
        (Intervention(hide="all"), True),
        (Intervention(temperature=2.0), False),
        (Intervention(hide=[1]), False),
    ],
    ids=["weights", "uniform", "nothing", "temperature", "hidden"],
)
def test_set_weights_count_as_the_stop_of_their_step(change, is_set, tiny_model, pairs):
    model = tiny_model(history="soft_mocha", scale=2.0)
    batch = make_batch(*pairs((3,), (5,)), Padding())
    memory, state = model.encode(batch.source, batch.source_mask, change)
    for _ in range(2):
        token = Token(model.decoder.body.embed(torch.tensor([5])))
        output, state = model.decoder.step(token, state, memory)
    is_stop = torch.equal(state.past[0].weights, output.attention_weights[:, 0])
    assert is_stop == is_set


# All of them.


@pytest.mark.parametrize("history", [*HISTORIES, "soft_monotonic", "soft_mocha"])
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


@pytest.mark.parametrize("history", [*HISTORIES, "soft_mocha"])
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


@pytest.mark.parametrize("history", MAKES_ITS_WEIGHTS)
def test_normaliser_beside_a_history_that_makes_its_weights_is_refused(history, tiny_model):
    with pytest.raises(ExperimentError, match="so that Sparsemax would do nothing; leave model/"):
        tiny_model(history=history, normaliser="sparsemax")


def test_weights_need_not_sum_to_one_under_monotonic_attention_alone():
    score = BahdanauScore(size=3, query_size=H, key_size=D)
    for name in HISTORIES:
        history = part_of("history", name)
        assert history is not None
        built = history(query_size=H, key_size=3, value_size=D)
        attention = Attention(score, Softmax(), GlobalScope(), built)
        assert attention.rows_sum_to_one == (name not in MAKES_ITS_WEIGHTS)


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
