"""One way to translate a sentence, as a search found it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Hypothesis:
    """The tokens that a search wrote for one sentence.

    tokens never hold `<eos>`; `finished` says whether it came, or the length limit cut the sentence off.
    attention_weights has a row for each token, and one for `<eos>` where it came; None where it was not asked for.
    """

    tokens: list[int]
    score: float
    finished: bool
    attention_weights: Tensor | None = None  # (T, S), pads of the batch included
