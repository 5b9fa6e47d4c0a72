"""A model works where its inputs are.

What it makes on the way, it makes there, and not on torch's default device.
"""

from __future__ import annotations

import pytest
import torch

from attnlab.batch import Padding
from attnlab.data.padding import make_batch
from attnlab.model.fast import speed_up

# Numbers on the meta device are never there: whoever meets one of them fails.
elsewhere = torch.device("meta")

VARIANTS = {
    "bahdanau": {},
    "stacked": {"cell": "lstm", "layers": 2},
    "reverse": {"reverse_source": True},
    "luong": {
        "decoder": "step_then_attend",
        "attention": "general",
        "input_feeding": "attentional_hidden",
    },
    "local_m": {"decoder": "step_then_attend", "attention": "dot", "scope": "local_m"},
    "local_p": {"attention": "scaled_luong", "scope": "local_p", "decoder": "step_then_attend"},
    "location": {"attention": "location"},
    "sparsemax": {"normaliser": "sparsemax"},
    "coverage": {"history": "coverage"},
    "heads": {"heads": 2, "history": "coverage"},
    "expected embedding": {"input_feeding": "expected_embedding"},
    "no attention": {"decoder": "no_attention", "context": "every_step"},
    "pads first": {"padding": Padding(encoder="pre", decoder="pre")},
    "pads read": {
        "padding": Padding(encoder="pre", decoder="pre", recurrence="read", attention_masked=False)
    },
}


@pytest.mark.parametrize("choices", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("guesses", [False, True], ids=["reference", "guesses"])
def test_model_forward_creates_tensors_on_the_batchs_device(guesses, choices, tiny_model, pairs):
    model = speed_up(tiny_model(**choices))
    batch = make_batch(*pairs(), model.padding)
    feed_reference = batch.target_input % 2 == 0 if guesses else None
    here = model(batch, feed_reference)
    with elsewhere:
        there = model(batch, feed_reference)
        there.reading.readout.sum().backward()
    torch.testing.assert_close(there.reading.readout, here.reading.readout, rtol=0, atol=0)
    torch.testing.assert_close(there.attention_weights, here.attention_weights, rtol=0, atol=0)


@pytest.mark.parametrize("choices", VARIANTS.values(), ids=VARIANTS)
def test_model_step_creates_tensors_on_the_sources_device(choices, tiny_model, pairs):
    model = speed_up(tiny_model(**choices))
    batch = make_batch(*pairs(), model.padding)
    rows = torch.tensor([3, 0, 0])
    with elsewhere, torch.no_grad():
        memory, state = model.encode(batch.source, batch.source_mask)
        memory, state = memory.select(rows), state.select(rows)
        for _ in range(2):
            logits, state, _ = model.step(batch.source[rows, -1], state, memory)
    assert logits.isfinite().all()
