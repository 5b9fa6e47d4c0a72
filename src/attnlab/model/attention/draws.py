"""What the attentions of a pass drew, for a loss that learns from it.

Axes: B batch, T target length, S source length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class Drawn(NamedTuple):
    """What was drawn at each step, added up over heads and blocks."""

    log_probability: Tensor  # (B, T), in nats; its gradient is the score function
    entropy: Tensor  # (B, T), in nats, of what it was drawn from


@dataclass
class Draws:
    """A record of one pass, which the memory hands to every attention of the decoder."""

    _log_probabilities: list[Tensor] = field(default_factory=list)
    _entropies: list[Tensor] = field(default_factory=list)

    def recording(self, normaliser: Normaliser) -> Callable[[Tensor], Tensor]:
        """The normaliser, which notes how likely its draw was, and among how many."""

        def weigh(scores: Tensor) -> Tensor:
            weights = normaliser(scores)
            log_probabilities = at_least_float32(scores).log_softmax(-1)
            # Where nothing may be seen, 0 times minus infinity would be NaN.
            finite = log_probabilities.masked_fill(~scores.isfinite(), 0)
            self._log_probabilities.append((weights.detach() * finite).sum(-1))
            self._entropies.append(-(log_probabilities.exp() * finite).sum(-1))
            return weights

        return weigh

    def take(self) -> Drawn | None:
        """What was drawn since the last call: (B, T), or (B,) where a history saw one step.

        None where nothing was, since an intervention set all weights.
        """
        if not self._log_probabilities:
            return None
        drawn = Drawn(_sum(self._log_probabilities), _sum(self._entropies))
        self._log_probabilities.clear()
        self._entropies.clear()
        return drawn


def _sum(of_attentions: list[Tensor]) -> Tensor:
    first, *others = of_attentions
    total = first
    for each in others:
        total = total + each
    return total
