"""Ancestral sampling: each token is drawn by its probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from attnlab.search.greedy import decode_autoregressively
from attnlab.search.search import Forced, Hypothesis, Search, Stepwise


@dataclass(frozen=True)
class SampleSearch(Search):
    """Ancestral sampling, from all tokens or from the likeliest ones alone.

    A hypothesis's score is the sum of its log-probabilities under the model itself, whatever it was
    drawn from. A source's draws follow from the seed and its own tokens: they are the same alone
    and in any batch, and the same again where a source comes twice. torch's generators have no part
    in them.

    Args:
        temperature: the logits are divided by it; towards 0 greedy search, towards infinity a fair
            die.
        top_k: how many tokens to draw from, the likeliest (Fan et al. 2018, section 5.1); None for
            all.
        top_p: draw from the fewest tokens, the likeliest, that have this much probability between
            them (the nucleus, Holtzman et al. 2020, section 3.1), counted among the top_k; None for
            all.
        seed: of the draws.
        n_best: draws for each sentence; the same hypothesis counts once, and the likeliest comes
            first.
    """

    temperature: Annotated[float, Field(ge=0.001, le=1000)]
    top_k: PositiveInt | None
    top_p: Annotated[float, Field(ge=0.001, le=1)] | None
    seed: NonNegativeInt
    max_length: PositiveInt
    max_length_ratio: Annotated[float, Field(gt=0)] | None = None
    min_length: NonNegativeInt = 0
    n_best: PositiveInt = 1
    replace_unknown: bool = False
    int8: bool = False

    def __call__(
        self,
        model: Stepwise,
        source: Tensor,
        source_mask: Tensor,
        with_attention: bool = False,
        forced: Forced = None,
    ) -> list[list[Hypothesis]]:
        limits = self.limits(source_mask.sum(1))
        uniform = self._uniform(source, source_mask, int(limits.max()))

        def choose(log_probs: Tensor, alive: Tensor, written: int) -> Tensor:
            numbers = uniform[alive, written]
            return draw(log_probs, numbers, self.temperature, self.top_k, self.top_p)

        drawn = decode_autoregressively(
            model,
            source,
            source_mask,
            limits,
            self.min_length,
            choose=choose,
            copies=self.n_best,
            with_attention=with_attention,
            forced=forced,
            int8=self.int8,
        )

        found = []
        for start in range(0, len(drawn), self.n_best):
            of_sentence = drawn[start : start + self.n_best]
            # The same hypothesis, drawn several times, counts once.
            distinct = {(*each.tokens, each.finished): each for each in of_sentence}
            found.append(sorted(distinct.values(), key=lambda hypothesis: -hypothesis.score))
        return found

    def _uniform(self, source: Tensor, source_mask: Tensor, length: int) -> Tensor:
        """Numbers in [0, 1), one for each token of each draw: (B * n_best, length)."""
        numbers = []
        for ids, real in zip(source.cpu(), source_mask.cpu(), strict=True):
            sentence = ids[real].tolist()  # without pads, so that the draws do not depend on them
            for copy in range(self.n_best):
                generator = np.random.default_rng([self.seed, copy, *sentence])
                numbers.append(generator.random(length, dtype=np.float32))
        return torch.from_numpy(np.stack(numbers)).to(source.device)


def draw(
    log_probs: Tensor, uniform: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """One token of each row: log-probabilities (N, V) and numbers in [0, 1) (N,) -> tokens (N,)."""
    # 1. Temper and sort: p^(1/temperature), the likeliest first. The shift keeps it finite.
    tempered = (log_probs - log_probs.amax(-1, keepdim=True)) / temperature
    probs, tokens = tempered.softmax(-1).sort(dim=-1, descending=True, stable=True)

    # 2. The k likeliest.
    if top_k is not None:
        probs[:, top_k:] = 0
        probs = probs / probs.sum(-1, keepdim=True)

    # 3. The nucleus: a token stays if those before it fall short of top_p; the first always stays.
    if top_p is not None:
        before = probs.cumsum(-1) - probs
        probs = probs.masked_fill(before >= top_p, 0)

    # 4. The first token whose cumulative probability exceeds the number.
    cumulative = probs.cumsum(-1)
    cumulative = cumulative / cumulative[:, -1:]  # ends with 1 exactly
    places = torch.searchsorted(cumulative, uniform.unsqueeze(1), right=True)
    return tokens.gather(1, places).squeeze(1)
