"""What data and model share: the special tokens, the padding scheme and the batch.

Axes: B batch, S source length, T target length. Batch first. Masks are bool, and True is a real
    token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal, Self

import torch
from torch import Tensor

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL_TOKENS = ("<pad>", "<unk>", "<bos>", "<eos>")


@dataclass(frozen=True)
class Padding:
    """Where pads stand, and who reads them.

    encoder, decoder: the side of the pads in the source and in the target.
    attention_masked: False lets the attention weigh pads too (its effect is `attention_pad_mass`).
    recurrence: what the recurrences do with pads. `skip` keeps the state across a pad, `read`
        consumes it. The encoder meets pads on either side, the decoder only where they come first.
    """

    encoder: Literal["pre", "post"] = "pre"
    decoder: Literal["pre", "post"] = "post"
    attention_masked: bool = True
    recurrence: Literal["skip", "read"] = "skip"


@dataclass(frozen=True)
class SourceBatch:
    """The sources of a padded batch.

    Each ends with `<eos>`. `rows` are their row numbers in their split.
    """

    source: Tensor  # (B, S) long
    source_mask: Tensor  # (B, S) bool
    rows: Tensor  # (B,) long

    def to(self, device: torch.device | str) -> Self:
        # A copy to a GPU is in order with what the GPU does next, so nothing waits for it. One from
        # a GPU is not.
        alone = torch.device(device).type == "cuda"
        return self._with_each(lambda tensor: tensor.to(device, non_blocking=alone))

    def pin_memory(self) -> Self:
        """The batch in memory that a GPU reads by itself; torch's loaders call this."""
        return self._with_each(lambda tensor: tensor.pin_memory())

    def _with_each(self, change: Callable[[Tensor], Tensor]) -> Self:
        return replace(
            self, **{field.name: change(getattr(self, field.name)) for field in fields(self)}
        )

    def __len__(self) -> int:
        return self.source.shape[0]


@dataclass(frozen=True)
class Batch(SourceBatch):
    """Sentence pairs of one padded batch.

    `target_input` starts with `<bos>`, `target_output` ends with `<eos>`, and both share
    `target_mask`.
    """

    target_input: Tensor  # (B, T) long
    target_output: Tensor  # (B, T) long
    target_mask: Tensor  # (B, T) bool

    def to(self, device: torch.device | str) -> Self:
        # Counted here: on a GPU every question for it would wait for the device
        tokens = self.num_target_tokens
        moved = super().to(device)
        vars(moved)["num_target_tokens"] = tokens
        return moved

    @cached_property
    def num_target_tokens(self) -> int:
        """Real target tokens, `<eos>` included."""
        return int(self.target_mask.sum())


@dataclass(frozen=True)
class LabelledBatch(SourceBatch):
    """Labelled sentences of one padded batch."""

    labels: Tensor  # (B,) long, the number of the class
