"""Where the window of local-m stands, and where dropout acts."""

from __future__ import annotations

import pytest
import torch

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.model.dropout import Dropout


@pytest.mark.parametrize("side", ["pre", "post"])
@pytest.mark.parametrize("recurrence", ["skip", "read"])
@pytest.mark.parametrize("masked", [True, False])
def test_local_m_window_counts_real_tokens_under_any_padding(
    side, recurrence, masked, tiny_model, pairs
):
    """Token i is seen at step t where |i - t| is at most D = 2.

    Both are counted over real tokens, wherever the pads stand and whether or not the recurrence
    reads them; t stays at the last token of a shorter source.
    """
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


@pytest.mark.parametrize(
    "where",
    ["encoder.dropout.0", "encoder.dropout.1", "encoder.layer_dropout", "decoder.body.dropout.1"],
)
def test_dropout_acts_in_training_only(where, tiny_model, pairs):
    """On embeddings and between layers, one at a time.

    The same for outputs of the encoder, readout and decoder.
    """
    batch = make_batch(*pairs(), Padding())
    decoders = [f"decoder.body.{name}" for name in ("dropout.0", "cell.dropout", "readout.dropout")]
    for place in (where, "encoder.output_dropout", *decoders):
        model = tiny_model(layers=2)
        plain = model(batch).reading.readout
        model.get_submodule(place).p = 0.5
        assert torch.equal(model(batch).reading.readout, plain), place
        model.train()
        assert not torch.equal(model(batch).reading.readout, plain), place


def test_dropout_of_the_config_reaches_every_place(tiny_model):
    model = tiny_model(dropout=0.25, attention_dropout=0.25, layers=2)
    places = {
        name: module.p
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Dropout)
    }
    assert set(places.values()) == {0.25}
    assert len(places) == 7


@pytest.mark.processor
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_drops_its_share_and_scales_the_rest(dtype):
    torch.manual_seed(1)
    x = torch.ones(200_000, dtype=dtype, requires_grad=True)
    found = Dropout(0.2)(x)
    assert found.unique().tolist() == pytest.approx([0.0, 1.25], rel=1e-5)
    assert (found == 0).double().mean().item() == pytest.approx(0.2, abs=0.005)
    found.sum().backward()
    assert torch.equal(x.grad, found)


@pytest.mark.processor
def test_dropout_of_numbers_side_by_side_is_independent():
    """Four of them come of one number that torch draws."""
    torch.manual_seed(1)
    dropped = (Dropout(0.3)(torch.ones(100_000, 4)) == 0).double()  # (draws, lanes)
    assert dropped.mean(0).tolist() == pytest.approx([0.3] * 4, abs=0.008)
    correlations = torch.corrcoef(dropped.T)
    assert (correlations - torch.eye(4)).abs().max() < 0.015


@pytest.mark.parametrize(("rate", "kept"), [(1e-7, 1.0), (1 - 1e-7, 0.0)])
def test_dropout_of_a_rate_beyond_sixteen_bits_is_torchs(rate, kept):
    torch.manual_seed(1)
    found = Dropout(rate)(torch.ones(1000))
    assert ((found != 0).double().mean().item()) == pytest.approx(kept, abs=0.002)


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (2, 0, 4)])
def test_dropout_takes_any_shape(shape):
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


@pytest.mark.parametrize("tokens", [(4, 6), (4,)])  # all steps at once, one step
def test_word_dropout_takes_whole_words(tokens, tiny_model):
    dropout = tiny_model(word_dropout=0.5).decoder.body.dropout.train()
    embedded = torch.ones(*tokens, 8)
    words = torch.stack([dropout(embedded) for _ in range(20)])
    assert set(words.unique().tolist()) == {0.0, 2.0}  # kept words are scaled by 1 / (1 - p)
    assert torch.equal(words.amin(-1), words.amax(-1))
