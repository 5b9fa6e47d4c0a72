"""What training learns from drawn attention weights, against sums over all that could be drawn.

Axes: B batch, T target length, S source length.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from composed_variants import part_of
from torch import Tensor

import attnlab
from attnlab.batch import Batch, Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.draws import Drawn
from attnlab.model.fast import speed_up
from attnlab.model.normalisers.reinforce import Reinforce
from attnlab.model.seq2seq import Seq2Seq
from attnlab.training.attention_losses.entropy import Entropy
from attnlab.training.loss import summed_loss, token_losses
from attnlab.training.reinforcement import Reinforcement, draw_problems


class Given(Reinforce):
    """Takes the positions that it is told, one call after the other, in place of its draws."""

    def __init__(self) -> None:
        super().__init__(reward_weight=1.0, entropy_weight=0.0, baseline_decay=0.9)
        self.positions: list[Tensor] = []

    def forward(self, scores: Tensor) -> Tensor:
        positions = self.positions.pop(0).view(scores.shape[:-1])
        return torch.nn.functional.one_hot(positions, scores.shape[-1]).to(scores.dtype)


def all_paths(model: Seq2Seq, batch: Batch):
    """Of each path of positions of a batch of one sentence: what a pass along it finds."""
    given = Given()
    model.decoder.attention.normaliser = given
    steps, tokens = batch.target_input.shape[1], batch.source.shape[1]
    for path in itertools.product(range(tokens), repeat=steps):
        at_once = model.decoder.reads_all_steps_at_once
        given.positions = (
            [torch.tensor(path)] if at_once else [torch.tensor([place]) for place in path]
        )
        yield model(batch)


def gradients_of(loss: Tensor, model: torch.nn.Module) -> dict[str, Tensor]:
    names, parameters = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient
        for name, parameter, gradient in zip(names, parameters, found, strict=True)
    }


ONE_SENTENCE = make_batch([[4, 5]], [[4, 6]], Padding())  # S and T are 3, with <eos>

MODELS = {
    "step_by_step": {},
    "at_once": {"decoder": "step_then_attend", "context": "readout"},
    "history": {"history": "location_sensitive"},
    "copies": {"output": "pointer_generator", "target_vocabulary_size": 11},
}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("choices", MODELS.values(), ids=MODELS)
def test_mean_of_the_estimate_is_the_gradient_of_the_expected_loss(choices, smoothing, tiny_model):
    """Over all 27 paths, each as often as it is drawn; no draw is left to chance."""
    model = tiny_model(normaliser="reinforce", scale=2.0, **choices).train()
    learned = Reinforcement(Given()).double()
    learned.average.fill_(-0.7)  # of earlier steps: it must change nothing
    learned.weight.fill_(1.0)
    expected_loss, estimate = torch.zeros(()), torch.zeros(())
    for unrolled in all_paths(model, ONE_SENTENCE):
        likely = unrolled.draw_log_probability.sum().exp()
        each = token_losses(model.output, unrolled, ONE_SENTENCE, smoothing)
        expected_loss = expected_loss + likely * each.loss.sum()
        term = learned(each.loss, ONE_SENTENCE.target_mask, unrolled.drawn)
        assert term.item() == 0
        estimate = estimate + likely.detach() * (each.loss.sum() + term)
    exact, mean = gradients_of(expected_loss, model), gradients_of(estimate, model)
    for name, gradient in exact.items():
        torch.testing.assert_close(mean[name], gradient, rtol=1e-9, atol=1e-12, msg=name)
    # Without the term the scores would not learn at all.
    scores = [name for name in exact if ".score." in name]
    assert scores
    assert all(exact[name].any() for name in scores)


def test_mean_over_many_draws_nears_the_exact_gradient(tiny_model):
    """The draws themselves, one a row of a large batch, and nothing enumerated."""
    model = tiny_model(normaliser="reinforce", scale=2.0).train()
    copies = 4_000
    batch = make_batch([[4, 5]] * copies, [[4, 6]] * copies, Padding())
    learned = Reinforcement(part_of("normaliser", "reinforce", entropy_weight=0.0)()).double()
    learned.average.fill_(-2.0)
    learned.weight.fill_(1.0)
    torch.manual_seed(0)
    found = []
    for _ in range(8):
        unrolled = model(batch)
        each = token_losses(model.output, unrolled, batch, 0.0)
        loss = each.loss.sum() + learned(each.loss, batch.target_mask, unrolled.drawn)
        found.append(gradients_of(loss / copies, model))
    expected_loss = torch.zeros(())
    for unrolled in all_paths(model, ONE_SENTENCE):
        likely = unrolled.draw_log_probability.sum().exp()
        expected_loss = (
            expected_loss
            + likely * token_losses(model.output, unrolled, ONE_SENTENCE, 0.0).loss.sum()
        )
    for name, exact in gradients_of(expected_loss, model).items():
        drawn = torch.stack([each[name] for each in found])
        error = drawn.std(0) / len(found) ** 0.5
        assert ((drawn.mean(0) - exact).abs() <= 6 * error + 1e-6).all(), name


@pytest.mark.parametrize(
    "padding", [Padding("pre", "post"), Padding("post", "pre")], ids=["post", "pre"]
)
@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend", "transformer"])
def test_pads_change_no_sentence_s_draws_and_rewards(padding, decoder, tiny_model):
    """Each row's log-probabilities are those of the sentence alone, when it draws the same."""
    choices = {"context": "readout"} if decoder == "step_then_attend" else {}
    model = tiny_model(normaliser="reinforce", decoder=decoder, padding=padding, **choices).train()
    batch = make_batch([[4, 5], [6]], [[4, 6, 7], [5]], padding)
    for module in model.modules():
        if isinstance(module, Reinforce):
            module.forward = lambda scores: torch.nn.functional.one_hot(
                scores.argmax(-1), scores.shape[-1]
            ).to(scores.dtype)
    together = model(batch).drawn
    alone = model(make_batch([[6]], [[5]], padding)).drawn
    real = batch.target_mask[1]
    torch.testing.assert_close(together.log_probability[1, real], alone.log_probability[0])
    torch.testing.assert_close(together.entropy[1, real], alone.entropy[0])


def test_draws_of_all_heads_and_blocks_are_added_up(tiny_model):
    uniform = {"scale": 0.0}  # all scores are 0
    for choices, number in (
        ({"heads": 2}, 2),
        ({"decoder": "transformer"}, 2),
        ({"decoder": "transformer", "heads": 2}, 4),
    ):
        model = tiny_model(normaliser="reinforce", **choices, **uniform).train()
        drawn = model(ONE_SENTENCE).drawn
        log_three = torch.tensor(3.0).log().item()
        expected = torch.full((1, 3), number * log_three, dtype=torch.float64)
        torch.testing.assert_close(drawn.entropy, expected, msg=str(choices))
        torch.testing.assert_close(drawn.log_probability, -expected, msg=str(choices))


def test_term_is_its_equation():
    """Two sentences, the second with a pad; R and b count the tokens from a step on."""
    settings = part_of(
        "normaliser", "reinforce", reward_weight=3.0, entropy_weight=0.5, baseline_decay=0.5
    )
    learned = Reinforcement(settings()).double()
    losses = torch.tensor([[1.0, 2.0], [4.0, 9.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True], [True, False]])
    log_probability = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]], dtype=torch.float64)
    log_probability.requires_grad_()
    drawn = Drawn(log_probability, torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64))

    def gradient() -> Tensor:
        term = learned(losses, mask, drawn)
        assert term.item() == pytest.approx(-0.5 * (0.1 + 0.2 + 0.3))
        return torch.autograd.grad(term, log_probability)[0]

    # 1. Nothing to compare with.
    assert not gradient().any()
    assert learned.baseline == 0
    learned.end_step()
    # 2. b is the mean of the first batch.
    b = -(1 + 2 + 4) / 3
    assert learned.baseline.item() == pytest.approx(b)
    rewards = torch.tensor([[-3 - 2 * b, -2 - b], [-4 - b, 0]], dtype=torch.float64)
    torch.testing.assert_close(gradient(), -3 * rewards)
    # 3. A second batch, of twice the loss: it weighs two thirds, as 1/2 beside 1/4.
    learned(losses, mask, drawn)
    learned._noted.clear()
    learned(2 * losses, mask, drawn)
    learned.end_step()
    assert learned.baseline.item() == pytest.approx(b / 3 + 2 * b * 2 / 3)


def test_parts_of_a_batch_see_one_baseline_and_are_one_step():
    once, in_parts = (Reinforcement(Given()) for _ in range(2))
    losses, mask = torch.rand(4, 3), torch.ones(4, 3, dtype=torch.bool)
    drawn = Drawn(torch.rand(4, 3), torch.rand(4, 3))
    once(losses, mask, drawn)
    for rows in (slice(0, 1), slice(1, 4)):
        in_parts(losses[rows], mask[rows], Drawn(*(x[rows] for x in drawn)))
        assert in_parts.weight == 0
    for each in (once, in_parts):
        each.end_step()
        each.end_step()  # of a step whose attention was off: nothing changes
    torch.testing.assert_close(in_parts.baseline, once.baseline)
    assert once.weight == pytest.approx(0.1)


def test_losses_of_tokens_add_up_to_that_of_the_batch(tiny_model):
    for padding in (Padding("pre", "post"), Padding("post", "pre")):
        model = speed_up(tiny_model(padding=padding).train())
        batch = make_batch([[4, 5], [6]], [[4, 6, 7], [5]], padding)
        unrolled = model(batch)
        for smoothing in (0.0, 0.2):
            each = token_losses(model.output, unrolled, batch, smoothing)
            expected = summed_loss(model.output, unrolled, batch, smoothing)
            torch.testing.assert_close(each.summed(), expected)
            assert (each.loss == 0).equal(~batch.target_mask)


def test_training_draws_and_evaluation_takes_the_likeliest():
    normaliser = part_of("normaliser", "reinforce")().train()
    scores = torch.tensor([0.0, 1.0, 2.0, -torch.inf], requires_grad=True)
    torch.manual_seed(3)
    draws = 20_000
    weights = normaliser(scores.expand(draws, 4))
    assert not weights.requires_grad
    assert (weights.sum(-1) == 1).all()
    # Four standard errors of a share.
    shares = weights.mean(0)
    expected = scores.detach().softmax(-1)
    torch.testing.assert_close(shares, expected, rtol=0, atol=4 * 0.5 / draws**0.5)
    assert shares[3] == 0
    state = torch.get_rng_state()
    assert normaliser.eval()(scores).tolist() == [0, 0, 1, 0]
    assert torch.equal(torch.get_rng_state(), state)


def test_training_logs_the_entropy_and_keeps_its_baseline(train):
    choices = {"max_steps": 8, "model": {"normaliser": "reinforce"}}
    first, again = train(**choices), train(**choices)
    other = train(**choices, seed=2)
    name = "train/draw_entropy"
    assert first.values(name) == again.values(name) != other.values(name)
    assert first.module.reinforcement.baseline < -0.5
    assert torch.equal(first.module.reinforcement.average, again.module.reinforcement.average)
    entropies, losses = first.values(name), first.values("train/loss")
    for loss, nll, entropy in zip(losses, first.values("train/token_nll"), entropies, strict=True):
        assert loss == pytest.approx(nll - 0.01 * entropy, abs=1e-5)


REFUSED = [
    ({"attention": "uniform"}, "the uniform score is 0 everywhere"),
    ({"history": "coverage"}, r"the loss of history Coverage .* model\.history\.loss_weight=0"),
    ({"scope": "local_p_renormalised"}, "a renormalised window changes nothing"),
    ({"output": "hard_attention"}, "sums over all source tokens that a token may come from"),
    (
        {"output": "pointer_network", "readout": "plain", "target_vocabulary_size": 11},
        "learns nothing of a token whose weight is 0",
    ),
    ({"history": "monotonic"}, "makes weights of the scores by itself"),
]


@pytest.mark.parametrize(("choices", "words"), REFUSED, ids=[str(each) for each, _ in REFUSED])
def test_choice_that_draws_could_not_teach_is_refused(choices, words, tiny_model):
    with pytest.raises(ExperimentError, match=words):
        tiny_model(normaliser="reinforce", **choices)


def test_coverage_without_its_loss_goes_with_draws(tiny_model):
    history = part_of("history", "coverage", loss_weight=0.0)
    model = tiny_model(normaliser="reinforce", history=history).train()
    assert model(ONE_SENTENCE).drawn is not None


def test_loss_on_drawn_weights_is_refused():
    drawn = Part(Reinforce)
    (problem,) = draw_problems(Entropy(1.0), drawn)
    assert "Entropy, but weights that normaliser Reinforce draws have no gradient" in problem
    assert draw_problems(None, drawn) == draw_problems(
        Entropy(1.0), part_of("normaliser", "gumbel")
    )


def test_layer_alone_refuses_to_draw():
    for normaliser in (Reinforce, part_of("normaliser", "reinforce")()):
        with pytest.raises(ValueError, match="which one layer does not know"):
            attnlab.Attention("dot", query_size=4, normaliser=normaliser)


def test_nothing_is_recorded_in_evaluation(tiny_model):
    model = tiny_model(normaliser="reinforce")
    unrolled = model(ONE_SENTENCE)
    assert unrolled.drawn is None
    assert replace(unrolled).draw_entropy is None
