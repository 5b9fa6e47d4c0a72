"""Laws of sparsemax, over drawn examples."""

from __future__ import annotations

import numpy as np
import paper_equations as paper
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab.model.normalisers.sparsemax import Sparsemax

scores = st.lists(st.floats(-20, 20), min_size=1, max_size=8).map(
    lambda z: torch.tensor(z, dtype=torch.float64)
)


@given(scores, st.floats(-50, 50))
def test_sparsemax_equals_the_paper_whatever_is_added_to_all_scores(z, shift):
    weights = Sparsemax()(z)
    np.testing.assert_allclose(weights.sum().item(), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights.numpy(), paper.sparsemax(z.numpy()), rtol=0, atol=1e-12)
    torch.testing.assert_close(Sparsemax()(z + shift), weights, rtol=0, atol=1e-12)
    # Larger scores, no smaller weights
    assert torch.equal(weights[z.argsort()].sort().values, weights[z.argsort()])
    hidden = torch.cat([z, torch.tensor([-torch.inf], dtype=torch.float64)])
    assert torch.equal(
        Sparsemax()(hidden), torch.cat([weights, torch.zeros(1, dtype=torch.float64)])
    )


@given(scores)
def test_sparsemax_is_the_nearest_point_of_the_simplex(z):
    """No other distribution, drawn at random, is nearer to the scores."""
    weights = Sparsemax()(z)
    others = torch.distributions.Dirichlet(torch.ones(len(z), dtype=torch.float64)).sample((50,))
    assert ((others - z).square().sum(-1) >= (weights - z).square().sum() - 1e-9).all()
