"""A pass waits for the device as often for a long target as for a short one.

Each wait is a pause of a GPU.
"""

from __future__ import annotations

import pytest
import torch
from torch.overrides import TorchFunctionMode

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.model.fast import speed_up

ASKS = {
    "nonzero",
    "item",
    "tolist",
    "cpu",
    "unique",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
}


class Asked(TorchFunctionMode):
    """Counts the calls that need a number from the device."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += getattr(function, "__name__", "") in ASKS
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("sample", [False, True], ids=["argmax", "sample"])
@pytest.mark.parametrize("decoder_padding", ["pre", "post"])
@pytest.mark.parametrize(
    "choices", [{}, {"decoder": "step_then_attend", "input_feeding": "attentional_hidden"}]
)
def test_waits_of_a_pass_with_guesses_do_not_grow_with_the_target(
    choices, decoder_padding, sample, tiny_model
):
    padding = Padding(decoder=decoder_padding)
    model = speed_up(tiny_model(padding=padding, **choices))
    counts = []
    for length in (2, 9):
        batch = make_batch([[4, 5], [4]], [[5] * length, [6] * (length - 1)], padding)
        with Asked() as asked:
            model(batch, torch.zeros_like(batch.target_mask), sample_guesses=sample)
        counts.append(asked.count)
    assert counts[0] == counts[1] > 0
