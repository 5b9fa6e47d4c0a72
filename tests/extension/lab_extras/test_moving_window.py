"""The window that moves forward, against its formula."""

from __future__ import annotations

import torch

from attnlab.model.attention.memory import Memory
from lab_extras.histories import MovingWindow


def test_moving_window_is_the_formula_and_pads_do_not_matter():
    window = MovingWindow(0.5, query_size=3).double()
    query = torch.randn(2, 3, dtype=torch.float64)
    real = torch.tensor([[True, True, True], [True, True, False]])
    memory = Memory(
        summary=torch.zeros(2, 4), keys=None, values=None, mask=real,
        positions=torch.tensor([[0, 1, 2], [0, 1, 2]]), lengths=real.sum(1),
    )  # fmt: skip
    scores = torch.zeros(2, 3, dtype=torch.float64).masked_fill(~real, -torch.inf)

    past, centre = window.first(memory), -1.0
    for _ in range(2):
        past = window.read_scores(window.before(past, query), scores)
        weights = window.weigh(scores, lambda z: z.softmax(1), past)
        past = window.after(past, query, torch.zeros(2, 4), weights)
        centre = centre + window.a(query).exp()
        expected = torch.exp(-0.5 * (torch.arange(3) - centre) ** 2) * real
        expected = expected / expected.sum(1, keepdim=True)
        torch.testing.assert_close(weights, expected)
