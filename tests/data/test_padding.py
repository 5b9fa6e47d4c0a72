import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab.batch import BOS, EOS, PAD, Padding
from attnlab.data.padding import Ragged, make_batch, pad_labelled

ROWS = st.lists(st.lists(st.integers(4, 50), max_size=7), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("side", "source", "mask"),
    [
        ("pre", [[5, 6, EOS], [PAD, 7, EOS]], [[True] * 3, [False, True, True]]),
        ("post", [[5, 6, EOS], [7, EOS, PAD]], [[True] * 3, [True, True, False]]),
    ],
)
def test_labelled_sentences_are_padded_as_sources_are(side, source, mask):
    labels, rows = np.array([1, 0], dtype=np.int32), np.array([4, 2], dtype=np.int32)
    batch = pad_labelled(Ragged.from_rows([[5, 6], [7]]), labels, rows, Padding(encoder=side))
    assert batch.source.tolist() == source
    assert batch.source_mask.tolist() == mask
    assert batch.labels.tolist() == [1, 0]
    assert batch.rows.tolist() == [4, 2]
    assert batch.labels.dtype == batch.rows.dtype == torch.long


def test_make_batch_without_rows_is_empty():
    batch = make_batch([], [], Padding())
    assert batch.source.shape == batch.target_input.shape == (0, 1)
    assert len(batch) == batch.num_target_tokens == 0


@pytest.mark.parametrize("encoder", ["pre", "post"])
@pytest.mark.parametrize("decoder", ["pre", "post"])
@given(source=ROWS, target=ROWS)
def test_batch_masks_select_exactly_the_original_tokens(encoder, decoder, source, target):
    size = min(len(source), len(target))
    batch = make_batch(source[:size], target[:size], Padding(encoder=encoder, decoder=decoder))
    assert batch.source.dtype == batch.rows.dtype == torch.long
    assert batch.source_mask.dtype == torch.bool
    for i in range(size):
        assert batch.source[i][batch.source_mask[i]].tolist() == [*source[i], EOS]
        assert batch.target_input[i][batch.target_mask[i]].tolist() == [BOS, *target[i]]
        assert batch.target_output[i][batch.target_mask[i]].tolist() == [*target[i], EOS]
    for ids, mask, side in (
        (batch.source, batch.source_mask, encoder),
        (batch.target_input, batch.target_mask, decoder),
        (batch.target_output, batch.target_mask, decoder),
    ):
        assert (ids[~mask] == PAD).all()
        assert mask.any(dim=0).all()  # no column of pads alone
        edge = mask.long().diff(dim=1)
        assert (edge >= 0).all() if side == "pre" else (edge <= 0).all()


@given(rows=ROWS, data=st.data())
def test_ragged_take_returns_the_chosen_rows(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    taken = Ragged.from_rows(rows).take(np.array(chosen, dtype=np.int64))
    assert [taken[i].tolist() for i in range(len(taken))] == [rows[i] for i in chosen]
