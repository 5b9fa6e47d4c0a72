"""When each decoder looks, what its first step knows, and where dropout acts."""

from __future__ import annotations

import pytest
import torch

from attnlab.batch import BOS, Padding
from attnlab.data.padding import make_batch


@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend"])
def test_decoder_query_is_the_state_before_or_after_the_step(decoder, tiny_model, pairs):
    """Bahdanau's first look knows no target token; Luong's does."""
    model = tiny_model(decoder=decoder)
    batch = make_batch(*pairs(), Padding())
    memory, state = model.encode(batch.source, batch.source_mask)
    _, _, one = model.step(torch.full((4,), BOS), state, memory)
    _, _, two = model.step(torch.full((4,), 7), state, memory)
    assert torch.equal(one, two) == (decoder == "attend_then_step")


@pytest.mark.parametrize("context", ["previous_in_cell", "readout_and_previous_in_cell"])
def test_step_then_attend_cell_reads_zero_and_then_the_previous_context(context, tiny_model, pairs):
    model = tiny_model(decoder="step_then_attend", context=context, readout="tanh")
    batch = make_batch(*pairs(), Padding())
    memory, state = model.encode(batch.source, batch.source_mask)
    assert not state.context.any()
    _, state, weights = model.step(batch.target_input[:, 0], state, memory)
    torch.testing.assert_close(state.context, (weights.unsqueeze(1) @ memory.values).squeeze(1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("heads", [None, 2])
def test_coverage_of_the_first_step_changes_nothing(heads, tiny_model, pairs):
    """The first step looks as it would without coverage, and looking costs nothing; the second differs."""
    model = tiny_model(coverage=1.0, heads=heads)
    batch = make_batch(*pairs(), Padding())
    memory, state = model.encode(batch.source, batch.source_mask)
    assert not state.coverage.any()
    attention = model.decoder.attention
    t = state.position.unsqueeze(1)
    query = state.recurrent.hidden[-1].unsqueeze(1)
    _, without = attention(query, memory, t)
    _, state, weights = model.step(batch.target_input[:, 0], state, memory)
    torch.testing.assert_close(weights, without[:, :, 0].mean(1), rtol=0, atol=1e-12)
    torch.testing.assert_close(state.coverage, without[:, :, 0], rtol=0, atol=1e-12)
    query = state.recurrent.hidden[-1].unsqueeze(1)
    _, without = attention(query, memory, t + 1)
    _, _, weights = model.step(batch.target_input[:, 1], state, memory)
    assert not torch.allclose(weights[2], without[2, :, 0].mean(0), rtol=0, atol=1e-6)


def test_coverage_loss_is_zero_at_the_first_step_and_scales_with_its_weight(tiny_model, pairs):
    one_step = make_batch(*pairs((4, 2), (0, 0)), Padding())
    assert tiny_model(coverage=1.0)(one_step).coverage_loss == 0
    batch = make_batch(*pairs(), Padding())
    once, twice, never = (tiny_model(coverage=weight)(batch).coverage_loss for weight in (1.0, 2.0, 0.0))
    assert once > 0
    torch.testing.assert_close(twice, 2 * once)
    assert never == 0


@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize("recurrence", ["skip", "read"])
@pytest.mark.parametrize("masked", [True, False])
def test_local_m_window_counts_real_tokens_under_any_padding(side, recurrence, masked, tiny_model, pairs):
    """Token i is seen at step t where |i - t| is at most D = 2, both counted over real tokens, wherever the pads stand
    and whether or not the recurrence reads them; t stays at the last token of a shorter source."""
    padding = Padding(side, side, attention_masked=masked, recurrence=recurrence)
    model = tiny_model(scope="local_m", padding=padding)
    sources, targets = pairs()
    batch = make_batch(sources, targets, padding)
    weights = model(batch).attention_weights
    for row in range(len(batch)):
        words, real = batch.source_mask[row], batch.target_mask[row]
        length = int(words.sum())
        for t, step in enumerate(weights[row][real]):
            centre = min(t, length - 1)
            assert (step[words] > 0).tolist() == [abs(i - centre) <= 2 for i in range(length)]
            if masked:
                assert (step[~words] == 0).all()
            else:  # pads follow the last token
                pads = int((~words).sum())
                assert int((step[~words] > 0).sum()) == min(pads, max(0, centre + 2 - (length - 1)))


@pytest.mark.parametrize("where", ["encoder.dropout", "encoder.layer_dropout", "decoder.body.dropout"])
def test_dropout_acts_in_training_only(where, tiny_model, pairs):
    """On embeddings and between layers, one at a time; the same for the readout and between the decoder's layers."""
    batch = make_batch(*pairs(), Padding())
    for place in (where, "decoder.body.cell.dropout", "decoder.body.readout.dropout"):
        model = tiny_model(layers=2)
        plain = model(batch).readout
        model.get_submodule(place).p = 0.5
        assert torch.equal(model(batch).readout, plain), place
        model.train()
        assert not torch.equal(model(batch).readout, plain), place


def test_dropout_of_the_config_reaches_every_place(tiny_model):
    model = tiny_model(dropout=0.25, layers=2)
    places = {name: module.p for name, module in model.named_modules() if isinstance(module, torch.nn.Dropout)}
    assert set(places.values()) == {0.25}
    assert len(places) == 5
