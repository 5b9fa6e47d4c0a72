"""Laws of reordering, sparsemax and skipping pads, over drawn examples."""

from __future__ import annotations

import numpy as np
import paper_equations as paper
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.model.attention.memory import count_positions
from attnlab.model.normalisers import Sparsemax
from attnlab.model.pads import flip_real, flipped, inverse, packed, pads_last, reorder

masks = (
    st.integers(1, 7)
    .flatmap(lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=4))
    .map(torch.tensor)
)
scores = st.lists(st.floats(-20, 20), min_size=1, max_size=8).map(lambda z: torch.tensor(z, dtype=torch.float64))


def numbered(mask: torch.Tensor) -> torch.Tensor:
    return torch.arange(mask.numel()).view(mask.shape)


@given(masks)
def test_pads_go_last_and_come_back(mask):
    order, x = pads_last(mask), numbered(mask)
    moved, moved_mask = reorder(x, order), reorder(mask, order)
    assert torch.equal(reorder(moved, inverse(order)), x)
    for row in range(len(mask)):
        assert moved[row][moved_mask[row]].tolist() == x[row][mask[row]].tolist()  # in their own order
        assert sorted(moved_mask[row].tolist(), reverse=True) == moved_mask[row].tolist()
    wide = x.unsqueeze(2).expand(-1, -1, 3)
    assert torch.equal(reorder(wide, order)[..., 1], moved)


@given(masks)
def test_flipping_turns_the_real_tokens_around_and_nothing_else(mask):
    mask = reorder(mask, pads_last(mask))
    order, x = flip_real(mask), numbered(mask)
    turned = reorder(x, order)
    assert torch.equal(reorder(turned, order), x)
    for row in range(len(mask)):
        assert turned[row][mask[row]].tolist() == x[row][mask[row]].tolist()[::-1]
        assert turned[row][~mask[row]].tolist() == x[row][~mask[row]].tolist()


@given(masks)
def test_positions_count_real_tokens_first(mask):
    for row, positions in zip(mask, count_positions(mask), strict=True):
        assert positions[row].tolist() == list(range(int(row.sum())))
        assert positions[~row].tolist() == list(range(int(row.sum()), len(row)))


@given(scores, st.floats(-50, 50))
def test_sparsemax_equals_the_paper_whatever_is_added_to_all_scores(z, shift):
    weights = Sparsemax()(z)
    np.testing.assert_allclose(weights.sum().item(), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights.numpy(), paper.sparsemax(z.numpy()), rtol=0, atol=1e-12)
    torch.testing.assert_close(Sparsemax()(z + shift), weights, rtol=0, atol=1e-12)
    assert torch.equal(weights[z.argsort()].sort().values, weights[z.argsort()])  # larger scores, no smaller weights
    hidden = torch.cat([z, torch.tensor([-torch.inf], dtype=torch.float64)])
    assert torch.equal(Sparsemax()(hidden), torch.cat([weights, torch.zeros(1, dtype=torch.float64)]))


@given(scores)
def test_sparsemax_is_the_nearest_point_of_the_simplex(z):
    """No other distribution, drawn at random, is nearer to the scores."""
    weights = Sparsemax()(z)
    others = torch.distributions.Dirichlet(torch.ones(len(z), dtype=torch.float64)).sample((50,))
    assert ((others - z).square().sum(-1) >= (weights - z).square().sum() - 1e-9).all()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2), st.sampled_from(["RNN", "GRU", "LSTM"]))
def test_packed_and_flipped_give_what_each_row_gives_alone(lengths, extra, kind):
    """The longest need not come first, and may be shorter than the batch is wide."""
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(2, 3, batch_first=True).double()
    x = torch.randn(len(lengths), max(lengths) + extra, 2, dtype=torch.float64)
    for run in (packed, flipped):
        outputs, ends = run(layer, x, torch.tensor(lengths))
        assert outputs.shape == (*x.shape[:2], 3)
        for row, length in enumerate(lengths):
            alone, final = layer(x[row : row + 1, :length])
            torch.testing.assert_close(outputs[row, :length], alone[0], rtol=0, atol=1e-12)
            assert (outputs[row, length:] == 0).all()
            for found, expected in zip(ends, final if kind == "LSTM" else [final], strict=True):
                torch.testing.assert_close(found[row], expected[0, 0], rtol=0, atol=1e-12)
