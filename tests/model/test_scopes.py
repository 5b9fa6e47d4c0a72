"""The windows alone, for several widths: with D = 2 sigma is 1, and its square no other number."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from paper_equations import weights_of
from paper_equations.scopes import local_m, local_p

from attnlab.model.scopes import LocalM, LocalP

LENGTHS = [9, 4, 1]
POSITIONS = torch.arange(9).expand(3, -1)


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_window_of_local_m_equals_the_paper(width):
    t = torch.tensor([[0, 3, 11]] * 3)
    window = LocalM(width)(torch.zeros(3, 3, 5), t, POSITIONS, torch.tensor(LENGTHS))
    assert window.emphasis is None
    for row, length in enumerate(LENGTHS):
        for column in range(3):
            expected, _ = local_m(int(t[row, column]), length, width)
            assert window.inside[row, column, :length].tolist() == expected.tolist()


@pytest.mark.parametrize("width", [1, 2, 3, 6])
@pytest.mark.parametrize("renormalise", [False, True])
def test_window_and_emphasis_of_local_p_equal_the_paper(renormalise, width):
    torch.manual_seed(0)
    scope = LocalP(width, renormalise, query_size=5).double()
    queries = 3 * torch.randn(3, 4, 5, dtype=torch.float64)
    t = torch.zeros(3, 4, dtype=torch.long)  # the place is predicted, whatever the step
    window = scope(queries, t, POSITIONS, torch.tensor(LENGTHS))
    assert window.renormalise == renormalise
    for row, length in enumerate(LENGTHS):
        for column in range(4):
            inside, emphasis = local_p(
                weights_of(scope), queries[row, column].numpy(), length, width
            )
            assert window.inside[row, column, :length].tolist() == inside.tolist()
            found = window.emphasis[row, column, :length].detach().numpy()
            np.testing.assert_allclose(found, emphasis, rtol=0, atol=1e-12)
