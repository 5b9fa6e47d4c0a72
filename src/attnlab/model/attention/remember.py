"""From the encoded source to what a decoder may look at."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.attention.attention import Attention
from attnlab.model.attention.memory import Memory, count_positions
from attnlab.model.attention.multi_head import MultiHeadAttention
from attnlab.model.encoder import Encoded


def remember(
    encoded: Encoded, source_mask: Tensor, masked: bool, attention: Attention | MultiHeadAttention | None
) -> Memory:
    """The memory of a batch, with the keys projected once for all steps.

    Args:
        source_mask: (B, S).
        masked: False lets the attention weigh pads.
        attention: None where nothing attends.
    """
    positions = count_positions(source_mask)
    # A masked pad may stand beyond the longest source; its position is never looked at.
    seen = positions.masked_fill(~source_mask, 0) if masked else positions
    keys, values = (None, None) if attention is None else attention.project(encoded.outputs, seen)
    return Memory(
        summary=encoded.final.hidden[-1],
        keys=keys,
        values=values,
        mask=source_mask if masked else None,
        positions=positions,
        lengths=source_mask.sum(1),
    )
