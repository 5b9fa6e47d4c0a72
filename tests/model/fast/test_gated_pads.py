"""Recurrences that read their pads, an LSTM behind closed gates, against packed sequences."""

from __future__ import annotations

import pytest
import torch

from attnlab.batch import Padding
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.fast import encoder as module
from attnlab.model.fast import speed_up
from attnlab.model.fast.encoder import lstm_with_gated_pads, read_pads_last
from attnlab.model.pads import read_real


def read_by(run, lstm, dtype):
    """Outputs, final states and all gradients of five rows that end in pads.

    The numbers at the pads are not zero.
    """
    torch.manual_seed(2)
    x = torch.randn(5, 6, 3, dtype=dtype, requires_grad=True)
    outputs, final = run(lstm, x, torch.tensor([6, 5, 1, 6, 4]))
    loss = sum((found * torch.randn_like(found)).sum() for found in (outputs, *final))
    return outputs, *final, *torch.autograd.grad(loss, [x, *lstm.parameters()])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
def test_lstm_with_gated_pads_equals_packed_sequences_with_gradients(dtype, tolerance):
    lstm = torch.nn.LSTM(3, 4, batch_first=True, dtype=dtype)
    for ours, theirs in zip(
        read_by(lstm_with_gated_pads, lstm, dtype), read_by(read_real, lstm, dtype), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.processor
@pytest.mark.bfloat16
def test_lstm_with_gated_pads_in_bfloat16_reads_whole_tiles(monkeypatch):
    """Inputs of 3 and of 32 numbers, of which all further ones are zero."""
    widths = []
    plain = torch.lstm
    monkeypatch.setattr(
        torch, "lstm", lambda x, *others: widths.append(x.shape[2]) or plain(x, *others)
    )
    for size in (3, 32):
        lstm = torch.nn.LSTM(size, 4, batch_first=True)
        x = torch.randn(5, 6, size)
        lengths = torch.tensor([6, 5, 1, 6, 4])
        exact, _ = read_real(lstm, x, lengths)
        with torch.autocast("cpu", torch.bfloat16):
            found, _ = lstm_with_gated_pads(lstm, x, lengths)
        torch.testing.assert_close(found.float(), exact, rtol=0, atol=0.02)
        assert (found[1, 5:] == 0).all()
    assert widths == [32, 64]


@pytest.mark.parametrize("cell", [torch.nn.GRU, torch.nn.RNN])
def test_pads_read_last_equal_packed_sequences_with_gradients(cell):
    layer = cell(3, 4, batch_first=True, dtype=torch.float64)
    found = read_by(read_pads_last, layer, torch.float64)
    for ours, theirs in zip(found, read_by(read_real, layer, torch.float64), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("cell", "lengths", "way"),
    [
        ("lstm", [10, 7, 7], "gated"),
        ("lstm", [10, 3, 1], "packed"),
        ("gru", [10, 7, 7], "packed"),
        ("rnn", [10, 7, 7], "packed"),
    ],
)
def test_lstm_with_few_pads_is_gated_and_all_other_layers_are_packed(
    cell, lengths, way, monkeypatch
):
    sizes = dict.fromkeys(("embedding_size", "hidden_size", "layers"), 1)
    rates = dict.fromkeys(("word_dropout", "dropout", "layer_dropout", "output_dropout"), 0.0)
    encoder = speed_up(
        RecurrentEncoder(
            cell,
            **sizes,
            bidirectional=False,
            merge="concatenate",
            reverse_source=False,
            **rates,
            source_vocabulary_size=5,
            padding=Padding(),
        )
    )
    taken = []
    gated, packed = module.lstm_with_gated_pads, RecurrentEncoder.read_real
    monkeypatch.setattr(
        module, "lstm_with_gated_pads", lambda *args: taken.append("gated") or gated(*args)
    )
    monkeypatch.setattr(
        RecurrentEncoder, "read_real", lambda *args: taken.append("packed") or packed(*args)
    )
    mask = torch.arange(10) < torch.tensor(lengths).unsqueeze(1)
    encoder(mask.long(), mask)
    assert taken == [way]
