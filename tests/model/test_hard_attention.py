"""Outputs that sum over alignments: held to the sum over each alignment, and to their own steps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import paper_equations as paper
import pytest
import torch
from composed_variants import FOLLOWS_ALIGNMENT, MARGINALISES, part_of
from lab_extras.alignments import StayingAttention
from paper_equations.alignments import every_alignment, transition_of

from attnlab.batch import BOS, EOS, Padding
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.model.outputs import hard_attention
from attnlab.search.beam import BeamSearch
from attnlab.search.greedy import GreedySearch
from attnlab.search.search import next_log_probs
from attnlab.training.loss import summed_loss, summed_nll

PAPER = {"decoder": "step_then_attend", "context": "readout"}
OUTPUTS = (*MARGINALISES, "first_order_hard_attention_both_ways")
every_output = pytest.mark.parametrize("output", OUTPUTS)


@every_output
@pytest.mark.parametrize("decoder", ["step_then_attend", "attend_then_step"])
@pytest.mark.parametrize("readout", ["tanh", "maxout", "attentional", "plain"])
def test_likelihood_and_posterior_are_sums_over_every_alignment(
    output, decoder, readout, tiny_model
):
    context = {"step_then_attend": "readout", "attend_then_step": "cell_and_readout"}[decoder]
    choices = {"output": output, "decoder": decoder, "readout": readout, "context": context}
    model = tiny_model(**choices, scale=2.0)
    source, target = [5, 8, 4], [7, 4, 6]
    batch = make_batch([source], [target], model.padding)
    unrolled = model(batch)

    computed = paper.Model(**choices).compute(paper.weights_of(model), source, target)
    log_likelihood, posterior = every_alignment(
        computed.transitions, computed.emissions, [*target, EOS]
    )
    label_log_probs = -summed_nll(model.output, unrolled, batch)
    np.testing.assert_allclose(label_log_probs.item(), log_likelihood, rtol=0, atol=1e-10)
    ours = unrolled.attention_weights[0].detach().numpy()
    np.testing.assert_allclose(ours, posterior, rtol=0, atol=1e-10)


@every_output
def test_alignment_stays_where_no_token_that_it_may_go_to_has_a_weight(output, tiny_model):
    """Weights of 0 leave no way on from some tokens; the probabilities still sum to 1."""
    choices = {**PAPER, "output": output, "readout": "tanh", "normaliser": "sparsemax"}
    stayed = 0
    for seed in range(4):
        model = tiny_model(**choices, scale=3.0, seed=seed)
        source, target = [5, 8, 4], [7, 4, 6]
        batch = make_batch([source], [target], model.padding)
        unrolled = model(batch)

        computed = paper.Model(**choices).compute(paper.weights_of(model), source, target)
        log_likelihood, posterior = every_alignment(
            computed.transitions, computed.emissions, [*target, EOS]
        )
        # From two tokens to themselves: no weights send an alignment to both.
        stayed += sum((each.diagonal() == 1).sum() >= 2 for each in computed.transitions)
        label_log_probs = -summed_nll(model.output, unrolled, batch)
        np.testing.assert_allclose(label_log_probs.item(), log_likelihood, rtol=0, atol=1e-10)
        ours = unrolled.attention_weights[0].detach().numpy()
        np.testing.assert_allclose(ours, posterior, rtol=0, atol=1e-10)
        sums = model.output(unrolled.reading).logsumexp(-1)
        torch.testing.assert_close(sums, torch.zeros_like(sums), rtol=0, atol=1e-12)
    assert (stayed > 0) == (output != "hard_attention")


@every_output
def test_posterior_is_the_gradient_of_the_log_likelihood(output, tiny_model, pairs, monkeypatch):
    """d log P(y | x) / d log p(y_t | a_t = i) = p(a_t = i | y, x)."""
    model = tiny_model(**PAPER, output=output, scale=2.0)
    batch = make_batch(*pairs(), model.padding)
    emissions = model(batch).reading.label_emissions.detach().requires_grad_()
    monkeypatch.setattr(model.output, "emissions_of", lambda reading, labels: emissions)
    unrolled = model(batch)
    nll = summed_nll(model.output, unrolled, batch)
    (gradient,) = torch.autograd.grad(-nll, emissions)
    real = batch.target_mask
    posterior = unrolled.attention_weights
    torch.testing.assert_close(gradient[real], posterior[real], rtol=0, atol=1e-12)
    sums = posterior[real].sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-12)
    assert (gradient[~real] == 0).all()


@every_output
def test_gradient_of_the_posterior(output, tiny_model, pairs):
    """A loss on the attention weights goes by it."""
    model = tiny_model(**PAPER, output=output, attention="general", hidden_size=2, scale=2.0)
    batch = make_batch(*pairs(source_lengths=(3, 1), target_lengths=(2, 3)), model.padding)
    parameters = [*model.decoder.attention.parameters(), model.output.vocabulary.bias]
    places = torch.arange(4.0, dtype=torch.float64)

    def mean_place(*_: torch.Tensor) -> torch.Tensor:
        return (model(batch).attention_weights @ places)[batch.target_mask]

    assert torch.autograd.gradcheck(mean_place, parameters, atol=1e-6)


@every_output
def test_only_monotonic_alignments_never_go_back(output, tiny_model, pairs):
    """No token is likelier than the one before to come from the first k tokens, for any k."""
    model = tiny_model(**PAPER, output=output, scale=4.0)
    batch = make_batch(*pairs(source_lengths=(5,), target_lengths=(6,)), model.padding)
    places = model(batch).attention_weights[0].cumsum(-1)
    goes_back = bool((places[1:] > places[:-1] + 1e-12).any())
    assert goes_back == (output not in FOLLOWS_ALIGNMENT)


@every_output
@pytest.mark.parametrize("input_feeding", ["none", "expected_embedding"])
def test_guesses_are_those_of_a_greedy_search(output, input_feeding, tiny_model, pairs):
    model = tiny_model(**PAPER, output=output, input_feeding=input_feeding, scale=3.0)
    batch = make_batch(*pairs(target_lengths=(5, 5, 5, 5)), model.padding)
    never = torch.zeros_like(batch.target_mask)
    guessed = model(batch, feed_reference=never).reading.hidden

    memory, state = model.encode(batch.source, batch.source_mask)
    token = batch.target_input[:, 0]
    differ = False
    for t in range(batch.target_input.shape[1]):
        logits, state, _ = model.step(token, state, memory)
        hidden = state.recurrent.hidden[-1]
        torch.testing.assert_close(guessed[:, t], hidden, rtol=0, atol=1e-12)
        token = next_log_probs(logits.detach()).argmax(1)
        differ |= bool((token != batch.target_output[:, t]).any())
    assert differ


@pytest.mark.parametrize("monotonic", [True, False])
def test_reach_beyond_the_source_costs_no_more_and_changes_nothing(monotonic, tiny_model, pairs):
    def built(reach: int):
        part = part_of("output", "first_order_hard_attention", {}, monotonic=monotonic, reach=reach)
        return tiny_model(**PAPER, output=part, scale=2.0)

    batch = make_batch(*pairs((4, 2), (3, 2)), Padding())
    length = batch.source.shape[1]
    longest = length - 1
    far, near = built(40), built(longest)
    first = 0 if monotonic else 40 - longest
    kept = slice(first, first + near.output.of_state.out_features)
    weights = dict(far.state_dict())
    for name in ("output.of_state.weight", "output.of_state.bias", "output.of_value.weight"):
        weights[name] = weights[name][kept]
    near.load_state_dict(weights)

    losses = []
    for model in (far, near):
        unrolled = model(batch)
        assert unrolled.reading.log_moves.shape[-1] == (length if monotonic else 2 * length - 1)
        loss = summed_nll(model.output, unrolled, batch)
        loss.backward()
        losses.append(loss.item())
        assert BeamSearch(3, 0.0, 5)(model, batch.source, batch.source_mask)
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)
    for long, short in zip(far.output.parameters(), near.output.parameters(), strict=True):
        of_kept = long.grad if long.shape == short.shape else long.grad[kept]
        torch.testing.assert_close(of_kept, short.grad, rtol=0, atol=1e-12)
        if long.shape != short.shape:
            assert long.grad.count_nonzero() == short.grad.count_nonzero() > 0


def test_reach_beyond_a_source_of_one_token_leaves_it_nowhere_to_go(tiny_model):
    part = part_of("output", "first_order_hard_attention", {}, reach=40)
    model = tiny_model(**PAPER, output=part)
    source = torch.tensor([[EOS]])
    memory, state = model.encode(source, source == EOS)
    logits, _, weights = model.step(torch.tensor([BOS]), state, memory)
    assert weights.tolist() == [[1.0]]
    assert logits.isfinite().all()


def check_sums_over_alignments(model, batch, unrolled, transitions) -> np.ndarray:
    """Likelihood and posterior of a batch of one, with these transitions; returns the posterior."""
    labels = batch.target_output
    emissions = torch.stack(
        [
            model.output.emissions_of(unrolled.reading, torch.full_like(labels, token))
            for token in range(model.output.vocabulary.out_features)
        ],
        dim=-1,
    )
    log_likelihood, posterior = every_alignment(
        transitions, emissions[0].detach().numpy(), labels[0].tolist()
    )
    label_log_probs = -summed_nll(model.output, unrolled, batch)
    np.testing.assert_allclose(label_log_probs.item(), log_likelihood, rtol=0, atol=1e-10)
    ours = unrolled.attention_weights[0].detach().numpy()
    np.testing.assert_allclose(ours, posterior, rtol=0, atol=1e-10)
    return ours


def test_chain_of_ones_own_is_summed_over_every_alignment(tiny_model):
    own = Part(StayingAttention, "model.output", stay=0.3)
    model = tiny_model(**PAPER, output=own, scale=2.0)
    batch = make_batch([[5, 8, 4]], [[7, 4, 6]], model.padding)
    unrolled = model(batch)
    weights = unrolled.reading.log_weights[0].exp().detach().numpy()
    transitions = [0.3 * np.eye(4) + 0.7 * np.tile(step, (4, 1)) for step in weights]
    check_sums_over_alignments(model, batch, unrolled, transitions)

    memory, state = model.encode(batch.source, batch.source_mask)
    for t in range(4):
        logits, state, _ = model.step(batch.target_input[:, t], state, memory)
        expected = model.output(unrolled.reading)[:, t]
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


@every_output
@pytest.mark.parametrize(
    "intervene",
    [
        Intervention("uniform"),
        Intervention(hide=[0, 2]),
        Intervention(temperature=0.1),
        Intervention(weights={1: [0, 3, 1, 0]}),
        Intervention(mask_pads=False),
    ],
    ids=["uniform", "hide", "temperature", "weights", "mask_pads"],
)
def test_alignment_goes_by_the_weights_of_an_intervention(output, intervene, tiny_model):
    model = tiny_model(**PAPER, output=output, scale=2.0)
    source, target = [5, 8, 4], [7, 4, 6]
    batch = make_batch([source], [target], model.padding)
    unrolled = model(batch, intervention=intervene)

    memory, _ = model.encode(batch.source, batch.source_mask, intervene)
    w = paper.part(paper.weights_of(model), "output.")
    weights = unrolled.reading.log_weights[0].exp().detach().numpy()
    states = unrolled.reading.hidden[0].detach().numpy()
    values = memory.values[0].detach().numpy()
    transitions = [
        transition_of(output, w, *step, values) for step in zip(weights, states, strict=True)
    ]
    ours = check_sums_over_alignments(model, batch, unrolled, transitions)
    for position in intervene.positions_to_hide:
        assert (ours[1:, position] == 0).all()


@every_output
@pytest.mark.parametrize(
    "intervene",
    [Intervention(hide="all"), Intervention(weights={1: [0, 0, 0, 0]})],
    ids=["hide", "weights"],
)
def test_intervention_without_any_weight_is_refused(output, intervene, tiny_model):
    model = tiny_model(**PAPER, output=output)
    batch = make_batch([[5, 8, 4]], [[7, 4, 6]], model.padding)
    with pytest.raises(ExperimentError, match="leaves all attention weights of a step at 0"):
        model(batch, intervention=intervene)


@every_output
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradients_of_the_loss(output, smoothing, tiny_model, pairs):
    model = tiny_model(**PAPER, output=output, attention="dot", hidden_size=2, scale=2.0)
    batch = make_batch(*pairs(source_lengths=(3, 1), target_lengths=(2, 3)), model.padding)
    parameters = [x for x in model.parameters() if x.requires_grad and x.numel() < 40]

    def loss(*_: torch.Tensor) -> torch.Tensor:
        return summed_loss(model.output, model(batch), batch, smoothing).loss

    assert torch.autograd.gradcheck(loss, parameters, atol=1e-6)


@every_output
@pytest.mark.parametrize("is_known", [True, False])
def test_parts_change_nothing(output, is_known, tiny_model, pairs, monkeypatch):
    """Processed two steps at a time, and computed again in the backward pass."""
    model = tiny_model(**PAPER, output=output, scale=2.0)
    batch = make_batch(*pairs(), model.padding)

    def values_and_gradients() -> list[torch.Tensor]:
        unrolled = model(batch)
        loss = summed_loss(model.output, unrolled, batch, 0.0 if is_known else 0.1).loss
        model.zero_grad()
        loss.backward()
        gradients = [x.grad for x in model.parameters() if x.grad is not None]
        return [loss.detach(), *(x.clone() for x in gradients)]

    whole = values_and_gradients()
    monkeypatch.setattr(hard_attention, "AT_ONCE", 2 * 8 * 11)
    monkeypatch.setattr(hard_attention, "STORED", 0)
    for ours, theirs in zip(values_and_gradients(), whole, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@every_output
@pytest.mark.parametrize("scale", [1e3, 1e6])
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "top_k"])
def test_extreme_scores_have_finite_losses_and_gradients(
    output, scale, normaliser, tiny_model, pairs
):
    model = tiny_model(
        **PAPER, output=output, attention="general", normaliser=normaliser, dtype=torch.float32
    )
    with torch.no_grad():
        model.output.generator.weight.mul_(scale)
        for weight in model.decoder.attention.parameters():
            weight.mul_(scale)
    batch = make_batch(*pairs(), model.padding)
    unrolled = model(batch)
    loss = summed_loss(model.output, unrolled, batch, 0.0).loss
    loss.backward()
    assert loss.isfinite()
    assert unrolled.attention_weights.isfinite().all()
    assert all(x.grad.isfinite().all() for x in model.parameters() if x.grad is not None)


@every_output
@pytest.mark.parametrize(
    "padding",
    [Padding(encoder, decoder) for encoder in ("pre", "post") for decoder in ("pre", "post")],
)
def test_sentence_of_a_batch_equals_the_sentence_alone(output, padding, tiny_model, pairs):
    model = tiny_model(**PAPER, output=output, padding=padding, scale=2.0)
    sources, targets = pairs()
    together = make_batch(sources, targets, padding)
    unrolled = model(together)
    log_probs = model.output(unrolled.reading)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = make_batch([source], [target], padding)
        its_own = model(alone)
        real, words = together.target_mask[row], together.source_mask[row]
        torch.testing.assert_close(
            log_probs[row][real], model.output(its_own.reading)[0], rtol=0, atol=1e-12
        )
        weights = unrolled.attention_weights[row][real]
        torch.testing.assert_close(
            weights[:, words], its_own.attention_weights[0], rtol=0, atol=1e-12
        )
        assert (weights[:, ~words] == 0).all()


@every_output
@pytest.mark.parametrize("input_feeding", ["none", "expected_embedding"])
@pytest.mark.parametrize("history", ["none", "coverage"])
def test_steps_give_the_log_probabilities_of_the_pass(
    output, input_feeding, history, tiny_model, pairs
):
    model = tiny_model(
        **PAPER, output=output, input_feeding=input_feeding, history=history, scale=2.0
    )
    batch = make_batch(*pairs(), model.padding)
    expected = model.output(model(batch).reading).log_softmax(-1)
    memory, state = model.encode(batch.source, batch.source_mask)
    for t in range(batch.target_input.shape[1]):
        logits, state, _ = model.step(batch.target_input[:, t], state, memory)
        real = batch.target_mask[:, t]
        torch.testing.assert_close(
            logits.log_softmax(-1)[real], expected[:, t][real], rtol=0, atol=1e-12
        )


@every_output
def test_greedy_search_is_a_beam_of_one_and_its_score_that_of_the_pass(output, tiny_model, pairs):
    model = tiny_model(**PAPER, output=output, scale=4.0, dtype=torch.float64)
    batch = make_batch(*pairs(), model.padding)
    greedy = GreedySearch(6)(model, batch.source, batch.source_mask)
    beam = BeamSearch(1, 0.0, 6)(model, batch.source, batch.source_mask)
    wide = BeamSearch(3, 0.0, 6, n_best=3)(model, batch.source, batch.source_mask)
    for row, several in enumerate(wide):
        assert greedy[row][0].tokens == beam[row][0].tokens
        source = batch.source[row][batch.source_mask[row]].tolist()[:-1]
        for hypothesis in (greedy[row][0], *several):
            one = make_batch([source], [hypothesis.tokens], model.padding)
            log_probs = next_log_probs(model.output(model(one).reading)[0].detach().clone())
            written = [*hypothesis.tokens, EOS] if hypothesis.finished else hypothesis.tokens
            total = sum(log_probs[t, token].item() for t, token in enumerate(written))
            assert hypothesis.score == pytest.approx(total, abs=1e-5)


@every_output
def test_state_of_a_step_is_selected_by_rows(output, tiny_model, pairs):
    """As a beam reorders its hypotheses, and leaves sentences that have ended."""
    model = tiny_model(**PAPER, output=output, scale=2.0)
    batch = make_batch(*pairs(), model.padding)
    memory, state = model.encode(batch.source, batch.source_mask)
    first = torch.full((len(batch),), BOS)
    _, state, _ = model.step(first, state, memory)
    second = batch.target_input[:, 1]
    expected, _, _ = model.step(second, state, memory)
    rows = torch.tensor([2, 0, 0])
    found, _, _ = model.step(second[rows], state.select(rows), memory.select(rows))
    torch.testing.assert_close(found, expected[rows], rtol=0, atol=1e-12)


@every_output
def test_loss_of_other_labels_than_the_target_is_not_a_number(output, tiny_model, pairs):
    model = tiny_model(**PAPER, output=output)
    batch = make_batch(*pairs(), model.padding)
    unrolled = model(batch)
    other = replace(batch, target_output=(batch.target_output + 1) % 9)
    assert math.isnan(summed_nll(model.output, unrolled, other).item())


@every_output
@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"decoder": "no_attention"}, "goes by the attention weights, but model.attention is null"),
        ({"normaliser": "sigmoid"}, "choose model/normaliser=softmax"),
        (
            {"normaliser": "hard"},
            "Hard gives one of them all the weight, so that nothing is learned",
        ),
        (
            {"normaliser": "gumbel"},
            "nothing is learned of the others; choose model/normaliser=soft",
        ),
        ({"heads": 2}, "this one has several heads; choose model/heads=one"),
        ({"context": "cell"}, "choose a model.decoder.context that goes into the readout"),
    ],
)
def test_choices_without_one_alignment_are_refused(output, choices, words, tiny_model):
    with pytest.raises(ExperimentError, match=words):
        tiny_model(output=output, **choices)
