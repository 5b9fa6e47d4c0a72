"""Interventions: change what an attention does, to see whether it matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from attnlab.model.attention.patch import Patch


@dataclass(frozen=True)
class Intervention:
    """A change of the attention weights, or of the tokens that a search may write.

    Source positions count the real tokens from 0 on, `<eos>` included, and steps the target tokens
    from 0 on: `.tokens` and `.source_tokens` of an answer list both. With several heads, each head
    gets the same change, unless `heads` names some of them.

    The kinds: `uniform` weights are equal wherever the attention may look; `permuted` weights
    change places among those tokens at random, other places at every step (Jain and Wallace 2019,
    section 4.2.1).

    Args:
        kind: uniform, permuted, or None for the model's own weights.
        weights: step -> one weight for each source position, in place of all others. They need not
            sum to 1, and may be negative where the model's own may. A whole map (T, S) gives them
            for its steps. A Transformer's decoder gets them in each of its blocks. Where an
            answer's `.attention` is no map of weights (the posterior of hard attention, the mean of
            several heads, one block of several), it changes the model that made it.
        temperature: the scores are divided by it: towards 0 the likeliest position takes all,
            towards infinity the weights become uniform. From 0.001 to 1000.
        hide: source positions that get the weight 0; the others share it. The encoder still reads
            them. Where all are hidden, all weights and the context are 0.
        mask_pads: True hides pads from the attention, False lets it weigh them; None for what the
            model was trained with.
        force: step -> the target token, as text or as its id, to write there; its score is the
            model's own. A translation that ends before does not come to it.
        seed: of `permuted`.
        heads: those that `kind`, `weights`, `temperature` and `hide` change, counted from 0 on;
            None for all. A Transformer's decoder has them in each block.
        patch: takes parts of another sentence's run; only for models that translate.

    Raises ValueError for a value out of range.
    """

    kind: Literal["uniform", "permuted"] | None = None
    weights: Mapping[int, Sequence[float]] = field(default_factory=dict)
    temperature: float = 1.0
    hide: Sequence[int] | Literal["all"] = ()
    mask_pads: bool | None = None
    force: Mapping[int, str | int] = field(default_factory=dict)
    seed: int = 0
    heads: Sequence[int] | None = None
    patch: Patch | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("uniform", "permuted", None):
            raise ValueError(f"kind must be 'uniform', 'permuted' or None, got {self.kind!r}")
        if not isinstance(self.hide, str):
            object.__setattr__(self, "hide", tuple(map(int, self.hide)))
        rows = (
            self.weights.items() if isinstance(self.weights, Mapping) else enumerate(self.weights)
        )
        object.__setattr__(
            self, "weights", {int(step): tuple(map(float, row)) for step, row in rows}
        )
        if not 0.001 <= self.temperature <= 1000:
            raise ValueError(f"temperature must be from 0.001 to 1000, got {self.temperature}")
        if any(place < 0 for place in (*self.positions_to_hide, *self.weights, *self.force)):
            raise ValueError(
                "hide, weights and force count positions and steps from 0 on, got a negative number"
            )
        if self.patch is not None and not isinstance(self.patch, Patch):
            raise ValueError(f"patch must be an attnlab.Patch, got {self.patch!r}")
        if self.heads is not None:
            object.__setattr__(self, "heads", tuple(map(int, self.heads)))
            self._check_heads(self.heads)
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")
        for step, row in self.weights.items():
            if not all(isfinite(weight) for weight in row):
                raise ValueError(f"weights of step {step} must be finite, got {list(row)}")

    def _check_heads(self, heads: Sequence[int]) -> None:
        if not heads or any(head < 0 for head in heads):
            raise ValueError(f"heads must name heads from 0 on, or be None, got {list(heads)}")
        if self.mask_pads is not None:
            raise ValueError("mask_pads goes for all heads; leave heads at None")
        if not (self.kind or self.weights or self.hide or self.temperature != 1):
            raise ValueError(
                "heads names heads, but nothing is changed there; give kind, weights, temperature "
                "or hide, too"
            )

    @property
    def positions_to_hide(self) -> Sequence[int]:
        """Those that `hide` names one by one."""
        return () if isinstance(self.hide, str) else self.hide

    @property
    def steps(self) -> int:
        """The least number of target tokens that have all steps that it names.

        `<eos>` counts.
        """
        return 1 + max((*self.weights, *self.force), default=-1)

    @property
    def changes_weights(self) -> bool:
        """False where it needs no attention: nothing is changed, or tokens are forced alone."""
        return (
            self.kind is not None
            or bool(self.weights or self.hide)
            or self.temperature != 1
            or self.mask_pads is not None
            or (self.patch is not None and self.patch.needs_attention)
        )

    def check_attention(self, heads: int, *, compares_keys: bool, is_signed: bool) -> None:
        """Raise ValueError where an attention lacks what is to be changed.

        heads: of the attention.
        compares_keys: False where its score goes by positions.
        is_signed: whether its own weights may be negative.
        """
        for step, row in self.weights.items():
            if not is_signed and any(weight < 0 for weight in row):
                raise ValueError(
                    f"weights of step {step} must be at least 0, as the model's own, got "
                    f"{list(row)}"
                )
        for head in self.heads or ():
            if head >= heads:
                raise ValueError(f"heads must be below {heads}, the model's heads, got {head}")
        if self.patch is not None and self.patch.keys and not compares_keys:
            raise ValueError("patch takes keys, but the score of this model goes by positions")

    def check_source(self, length: int) -> None:
        """Raise ValueError where it names a position that a source does not have.

        length: the source's tokens, `<eos>` included.
        """
        for position in self.positions_to_hide:
            if position >= length:
                raise ValueError(
                    f"hide must name positions below {length}, the source's tokens, got {position}"
                )
        for step, row in self.weights.items():
            if len(row) != length:
                raise ValueError(
                    f"weights of step {step} must be {length}, one for each source token, got "
                    f"{len(row)}"
                )
        if self.patch is not None:
            self.patch.check_source(length)

    def shown(self, positions: Tensor) -> Tensor:
        """positions (B, S) -> (B, S) bool, False at what it hides."""
        if self.hide == "all":
            return torch.zeros_like(positions, dtype=torch.bool)
        return torch.isin(
            positions, positions.new_tensor(self.positions_to_hide, dtype=torch.long), invert=True
        )

    def adjusted(self, scores: Tensor) -> Tensor:
        """The scores (B, T, S) that the model makes weights of, where not all is hidden.

        A query that may see nothing gets scores of 0, of which a softmax makes no NaN.
        """
        blind = ~scores.isfinite().any(-1, keepdim=True)
        return scores.masked_fill(blind, 0) / self.temperature

    def replaced(
        self, weights: Tensor | None, scores: Tensor, positions: Tensor, t: Tensor
    ) -> Tensor:
        """The weights in the place of those that the model made of the adjusted scores.

        Args:
            weights: (B, T, S), of the model; None where all is hidden.
            scores: (B, T, S), minus infinity where nothing may be seen.
            positions: (B, S), of each source token.
            t: (B, T), the step of each query.

        Returns:
            (B, T, S); zeros where a query may see nothing.
        """
        visible = scores.isfinite()
        if weights is None:
            weights = torch.zeros_like(scores)  # without a gradient to the scores
        else:
            weights = weights.masked_fill(~visible.any(-1, keepdim=True), 0)
        positions = positions.unsqueeze(1).expand_as(scores)
        if self.kind == "uniform":
            weights = visible.to(weights.dtype) / visible.sum(-1, keepdim=True).clamp(min=1)
        elif self.kind == "permuted":
            # The kth token that may be seen, in the order of the sentence, gets the weight of the
            # kth in random order.
            last = torch.iinfo(torch.long).max
            to = positions.masked_fill(~visible, last).argsort(-1)
            of = self._random_ranks(positions, t).masked_fill(~visible, last).argsort(-1)
            weights = torch.zeros_like(weights).scatter(-1, to, weights.gather(-1, of))
        for step, row in self.weights.items():
            given = weights.new_zeros(positions.shape[-1])
            given[: len(row)] = weights.new_tensor(row)
            weights = torch.where((t == step).unsqueeze(2), given[positions], weights)
        return weights

    def _random_ranks(self, positions: Tensor, t: Tensor) -> Tensor:
        """Numbers that depend on the seed, the step and the position alone: (B, T, S) long."""
        length = positions.shape[-1]
        steps = range(int(t.max()) + 1)
        drawn = np.stack(
            [
                np.random.default_rng([self.seed, step]).integers(2**62, size=length)
                for step in steps
            ]
        )
        return torch.from_numpy(drawn).to(t.device)[t.unsqueeze(2), positions]
