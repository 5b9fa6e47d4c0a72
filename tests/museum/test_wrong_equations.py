"""Each fault of a model is the wrong equation that its docstring gives, and nothing else.

The wrong equations are written here a second time, in NumPy or as a loop over steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear

from attnlab.batch import PAD, Batch

# Queries that look at a batch: of each sentence two.
QUERIES = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
STEPS = torch.tensor([[0, 1]] * 3)


def looked(model: Any, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Context (B, T, D) and weights (B, T, S) of the queries."""
    with torch.no_grad():
        memory, _ = model.encode(batch.source, batch.source_mask)
        context, weights = model.decoder.attention(QUERIES, memory, STEPS)
    return context.numpy(), weights[:, 0].numpy()


def scored(model: Any, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Scores (B, T, S) of the queries, those of pads too, and values (B, S, D)."""
    with torch.no_grad():
        memory, _ = model.encode(batch.source, batch.source_mask)
        scores = model.decoder.attention.score(QUERIES, memory.keys)
    return scores.numpy(), memory.values.numpy()


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-11, atol=1e-13)


def logits_of(model: Any, batch: Batch, *arguments: Any) -> Tensor:
    """(B, T, V), zero at pads, where nothing reads them."""
    with torch.no_grad():
        logits: Tensor = model.output(model(batch, *arguments).reading)
    return logits.masked_fill(~batch.target_mask.unsqueeze(2), 0)


def exponentials(scores: np.ndarray) -> np.ndarray:
    return np.exp(scores)


def test_softmax_over_batch_divides_by_the_sum_over_sentences(pair: Callable[..., Any]) -> None:
    both = pair("softmax_over_batch", "padding=post_post")
    batch = both.batch()
    scores, values = scored(both.right, batch)
    powers = exponentials(scores) * batch.source_mask.numpy()[:, None]
    expected = powers / powers.sum(axis=0, keepdims=True)

    context, weights = looked(both.faulty, batch)

    close(weights, expected)
    close(context, expected @ values)
    # In the first columns all three share a weight of 1; in the last one the longest has it all.
    close(weights[:, :, 0].sum(0), 1)
    close(weights[0, :, -1], 1)


def test_softmax_over_batch_leaves_no_gradient_without_a_number(pair: Callable[..., Any]) -> None:
    both = pair("softmax_over_batch", "padding=post_post")
    batch = both.batch()
    more = torch.zeros(3, 2, dtype=torch.long)
    # Two columns that no sentence has a token in
    source = torch.cat([batch.source, more], dim=1)
    mask = torch.cat([batch.source_mask, more.bool()], dim=1)
    memory, _ = both.faulty.encode(source, mask)
    context, _ = both.faulty.decoder.attention(QUERIES, memory, STEPS)
    context.sum().backward()
    for name, parameter in both.faulty.decoder.attention.named_parameters():
        assert bool(parameter.grad.isfinite().all()), name


def test_no_source_mask_lets_pads_take_their_share(pair: Callable[..., Any]) -> None:
    both = pair("no_source_mask")
    batch = both.batch()
    scores, values = scored(both.right, batch)
    powers = exponentials(scores)
    expected = powers / powers.sum(axis=2, keepdims=True)

    context, weights = looked(both.faulty, batch)

    close(weights, expected)
    close(context, expected @ values)
    assert (weights[1][:, :3] > 0).all()  # the pads of the short sentence


@pytest.mark.parametrize("score", [1e-10, -3.0])
def test_leaking_mask_gives_pads_its_score(pair: Callable[..., Any], score: float) -> None:
    both = pair("mask_that_leaks", f"model.fault.score={score}")
    batch = both.batch()
    scores, values = scored(both.right, batch)
    powers = exponentials(np.where(batch.source_mask.numpy()[:, None], scores, score))
    expected = powers / powers.sum(axis=2, keepdims=True)

    context, weights = looked(both.faulty, batch)

    close(weights, expected)
    close(context, expected @ values)


def test_leaking_mask_keeps_what_lies_outside_of_a_window_hidden(pair: Callable[..., Any]) -> None:
    both = pair("mask_that_leaks", "model/scope=local_m", "model.scope.width=1")
    batch = both.batch()
    _, weights = looked(both.faulty, batch)
    _, right = looked(both.right, batch)
    real = np.broadcast_to(batch.source_mask.numpy()[:, None], right.shape)
    outside = real & (right == 0)
    assert outside.any()
    assert (weights[outside] == 0).all()


@pytest.mark.parametrize(
    "score", ["model/attention=bahdanau", "model/attention=general", "model/attention=concat"]
)
def test_context_from_keys_averages_projected_keys(pair: Callable[..., Any], score: str) -> None:
    both = pair("context_from_keys", score)
    batch = both.batch()
    with torch.no_grad():
        memory, _ = both.right.encode(batch.source, batch.source_mask)
    _, right_weights = looked(both.right, batch)

    context, weights = looked(both.faulty, batch)

    close(weights, right_weights)
    close(context, right_weights @ memory.keys.numpy())


def test_relu_for_tanh_rectifies_bahdanaus_hidden_layer(pair: Callable[..., Any]) -> None:
    both = pair("relu_for_tanh")
    batch = both.batch()
    score = both.right.decoder.attention.score
    weights = (score.W.weight, score.U.weight, score.v)
    of_query, of_keys, v = (each.detach().numpy() for each in weights)
    with torch.no_grad():
        memory, _ = both.right.encode(batch.source, batch.source_mask)
    h, s = memory.values.numpy(), QUERIES.numpy()

    found, _ = scored(both.faulty, batch)

    expected = np.empty(found.shape)
    for b, t, i in np.ndindex(found.shape):
        expected[b, t, i] = v @ np.maximum(0, of_query @ s[b, t] + of_keys @ h[b, i])
    close(found, expected)


@pytest.mark.parametrize("name", ["normed_bahdanau", "concat"])
def test_relu_for_tanh_rectifies_other_additive_scores(pair: Callable[..., Any], name: str) -> None:
    both = pair("relu_for_tanh", f"model/attention={name}")
    batch = both.batch()
    score = both.right.decoder.attention.score
    with torch.no_grad():
        memory, _ = both.right.encode(batch.source, batch.source_mask)
        v = score.v
        if name == "concat":
            hidden = QUERIES @ score.W.weight[:, :16].T
        else:
            hidden = score.W(QUERIES)
            v = score.g * score.v / score.v.norm()
        inner = hidden.unsqueeze(2) + memory.keys.unsqueeze(1)
        expected = (inner.clamp(min=0) * v).sum(-1)

    found, _ = scored(both.faulty, batch)

    close(found, expected)


def test_score_not_learnt_gets_no_gradient_and_all_else_does(pair: Callable[..., Any]) -> None:
    both = pair("score_not_learnt")
    batch = both.batch()
    close(logits_of(both.faulty, batch), logits_of(both.right, batch))

    for model in (both.faulty, both.right):
        model.output(model(batch).reading).log_softmax(-1)[batch.target_mask].sum().backward()

    of_right = dict(both.right.named_parameters())
    for name, parameter in both.faulty.named_parameters():
        if name.startswith("decoder.attention.score."):
            assert parameter.grad is None, name
            assert of_right[name].grad is not None
        else:
            close(parameter.grad, of_right[name].grad)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_state_not_passed_starts_each_step_from_zero(pair: Callable[..., Any], cell: str) -> None:
    both = pair("state_not_passed", f"model/encoder={cell}")
    batch = both.batch()
    right = both.right
    with torch.no_grad():
        memory, state = right.encode(batch.source, batch.source_mask)
        query = state.recurrent.hidden[-1]
        expected = []
        for tokens in batch.target_input.T:
            embedded = right.decoder.body.embed(tokens)
            context, _ = right.decoder.attention(
                query.unsqueeze(1), memory, torch.zeros(3, 1, dtype=torch.long)
            )
            x = torch.cat([embedded, context[:, 0]], dim=1)
            (layer,) = right.decoder.body.cell.cells
            zero = torch.zeros(3, 16, dtype=torch.float64)
            if cell == "lstm":
                query, _ = layer(layer.from_input(x), (zero, zero))
            else:
                query = layer(layer.from_input(x), zero)
            readout = right.decoder.body.readout(query, context[:, 0], embedded)
            expected.append(linear(readout, right.output.weight, right.output.bias))
    expected_logits = torch.stack(expected, dim=1).masked_fill(~batch.target_mask.unsqueeze(2), 0)

    close(logits_of(both.faulty, batch), expected_logits)


def test_state_not_passed_is_the_same_in_all_steps_at_once(pair: Callable[..., Any]) -> None:
    both = pair(
        "state_not_passed", "model/decoder=step_then_attend", "model/attention=general",
        "model.decoder.context=readout", "model/encoder=lstm", "model.encoder.layers=2",
    )  # fmt: skip
    batch = both.batch()
    faulty = both.faulty
    assert faulty.decoder.reads_all_steps_at_once

    everything_fed = torch.ones_like(batch.target_mask)
    close(logits_of(faulty, batch), logits_of(faulty, batch, everything_fed))
    assert not torch.allclose(logits_of(faulty, batch), logits_of(both.right, batch))


@pytest.mark.parametrize("bridge", ["linear", "mean", "first_backward", "copy"])
def test_cell_from_hidden_starts_with_two_equal_states(
    pair: Callable[..., Any], bridge: str
) -> None:
    both = pair("cell_from_hidden", f"model/bridge={bridge}")
    batch = both.batch()
    with torch.no_grad():
        _, right = both.right.encode(batch.source, batch.source_mask)
        _, state = both.faulty.encode(batch.source, batch.source_mask)
    close(state.recurrent.hidden, right.recurrent.hidden)
    close(state.recurrent.cell, right.recurrent.hidden)
    assert not torch.allclose(right.recurrent.cell, right.recurrent.hidden)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_directions_mixed_gives_a_sentence_the_states_of_two_others(
    pair: Callable[..., Any], cell: str
) -> None:
    both = pair("directions_mixed", f"model/encoder={cell}", "model.encoder.layers=2")
    batch = both.batch()
    with torch.no_grad():
        right = both.right.encoder(batch.source, batch.source_mask)
        faulty = both.faulty.encoder(batch.source, batch.source_mask)

    close(faulty.outputs, right.outputs)
    kinds = [(faulty.final.hidden, right.final.hidden)]
    if cell == "lstm":
        kinds.append((faulty.final.cell, right.final.cell))
    for found, joined in kinds:
        for layer in range(2):
            # As torch has them: all forward states, then all backward ones.
            listed = [*joined[layer, :, :8], *joined[layer, :, 8:]]
            for b in range(3):
                close(found[layer, b], torch.cat([listed[2 * b], listed[2 * b + 1]]))


def test_directions_mixed_is_right_for_one_sentence(pair: Callable[..., Any]) -> None:
    both = pair("directions_mixed")
    batch = both.batch((4,), (3,))
    close(logits_of(both.faulty, batch), logits_of(both.right, batch))


@pytest.mark.parametrize("padding", ["post_post", "pre_post"])
def test_pads_in_final_state_are_read_like_words(pair: Callable[..., Any], padding: str) -> None:
    both = pair("pads_in_final_state", f"padding={padding}")
    batch = both.batch()
    encoder = both.right.encoder
    (forward,), (backward,) = encoder.forward_layers, encoder.backward_layers
    with torch.no_grad():
        vectors = encoder.embedding(batch.source)
        _, last = forward(vectors)
        _, first = backward(vectors.flip(1))
        found = both.faulty.encoder(batch.source, batch.source_mask).final.hidden[0]
    close(found, torch.cat([last[0], first[0]], dim=1))
    assert (batch.source == PAD).any()


def test_mask_that_assumes_right_pads_takes_the_first_columns(pair: Callable[..., Any]) -> None:
    both = pair("mask_assumes_right_pads")
    batch = both.batch()
    columns = np.arange(batch.source.shape[1])
    mask = torch.from_numpy(columns < batch.source_mask.sum(1, keepdim=True).numpy())
    assert not torch.equal(mask, batch.source_mask)
    with torch.no_grad():
        expected, state = both.right.encode(batch.source, mask)
        found, found_state = both.faulty.encode(batch.source, batch.source_mask)
    close(found.keys, expected.keys)
    assert torch.equal(found.mask, mask)
    close(found_state.recurrent.hidden, state.recurrent.hidden)


@pytest.mark.parametrize(
    "fault",
    ["no_source_mask", "mask_that_leaks", "pads_in_final_state", "mask_assumes_right_pads"],
)
def test_faults_about_pads_change_nothing_without_pads(
    pair: Callable[..., Any], fault: str
) -> None:
    both = pair(fault)
    equal = both.batch((5, 5, 5), (4, 4, 4))
    close(logits_of(both.faulty, equal), logits_of(both.right, equal))
    unequal = both.batch()
    assert not torch.allclose(logits_of(both.faulty, unequal), logits_of(both.right, unequal))


def test_free_running_perplexity_feeds_its_own_guesses(pair: Callable[..., Any]) -> None:
    both = pair("free_running_perplexity", "padding=post_post")
    batch = both.batch()
    right = both.right
    with torch.no_grad():
        memory, state = right.encode(batch.source, batch.source_mask)
        tokens = batch.target_input[:, 0]
        expected = []
        for _ in range(batch.target_input.shape[1]):
            logits, state, _ = right.step(tokens, state, memory)
            expected.append(logits.clone())
            logits[:, [0, 2]] = -torch.inf
            tokens = logits.argmax(-1)
    expected_logits = torch.stack(expected, dim=1).masked_fill(~batch.target_mask.unsqueeze(2), 0)

    close(logits_of(both.faulty, batch), expected_logits)


def test_free_running_perplexity_leaves_training_alone(pair: Callable[..., Any]) -> None:
    both = pair("free_running_perplexity")
    batch = both.batch()
    both.faulty.train()
    both.right.train()
    close(logits_of(both.faulty, batch), logits_of(both.right, batch))


@pytest.mark.parametrize("padding", ["pre_post", "post_pre"])
def test_heat_map_off_by_one_shows_the_row_before(pair: Callable[..., Any], padding: str) -> None:
    both = pair("heat_map_off_by_one", f"padding={padding}")
    batch = both.batch()
    with torch.no_grad():
        faulty, right = both.faulty(batch), both.right(batch)

    close(logits_of(both.faulty, batch), logits_of(both.right, batch))
    for row, mask in enumerate(batch.target_mask):
        own = right.attention_weights[row, mask]
        shown = faulty.attention_weights[row, mask]
        close(shown[0], 0)
        close(shown[1:], own[:-1])


def test_heat_map_off_by_one_is_the_same_while_decoding(pair: Callable[..., Any]) -> None:
    both = pair("heat_map_off_by_one")
    batch = both.batch()
    steps: dict[str, list[Tensor]] = {"faulty": [], "right": []}
    for name, model in (("faulty", both.faulty), ("right", both.right)):
        with torch.no_grad():
            memory, state = model.encode(batch.source, batch.source_mask)
            # A search keeps some rows, and takes others twice.
            for rows in ([0, 1, 2], [2, 0, 0], [1, 2, 0]):
                chosen = torch.tensor(rows)
                state = state.select(chosen)
                memory = memory.select(chosen)
                _, state, weights = model.step(batch.target_input[chosen, 0], state, memory)
                steps[name].append(weights)
    close(steps["faulty"][0], 0)
    close(steps["faulty"][1], steps["right"][0][[2, 0, 0]])
    close(steps["faulty"][2], steps["right"][1][[1, 2, 0]])
