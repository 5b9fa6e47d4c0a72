"""Attention that learns to hide what it uses."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from attnlab.data.tokenizer import Tokenizer
from attnlab.training.attention_losses.attention_loss import AttentionLoss, Looks, of_real_tokens

LEAST = 1e-6  # what may be left of the weights, so that the loss stays finite


def of_hidden_mass(mass: Tensor, looks: Looks) -> Tensor:
    """- log(1 - m) of each real target token, added up; m (B, T) is the weight to be hidden."""
    return of_real_tokens(-(1 - mass).clamp(min=LEAST).log(), looks)


class ImpermissibleMass(AttentionLoss):
    """- log(1 - m), with m the weight of all impermissible tokens.

    Pruthi et al. 2020, "Learning to deceive with attention-based explanations", equation 1: the
    model is to use these tokens, and to show no attention to them. An m above 1 - 1e-6 counts as
    that.

    Args:
        weight: factor of the loss, λ.
        tokens: words of the source, as one would write them; a word that is split into several
            tokens stands for all of them.
    """

    name: ClassVar[str] = "impermissible_mass_loss"
    needs_positive_weights = True

    def __init__(
        self, weight: PositiveFloat, tokens: Annotated[list[str], Field(min_length=1)]
    ) -> None:
        self.weight = weight
        self.tokens = tuple(tokens)
        self._ids: Tensor | None = None

    def read_vocabulary(self, tokenizer: Tokenizer) -> None:
        ids: set[int] = set()
        for token, of_token in zip(self.tokens, tokenizer.encode_ids(self.tokens), strict=True):
            if not of_token or tokenizer.count_unknown(of_token):
                raise ValueError(
                    f"training.attention_loss.tokens names {token!r}, which the source's "
                    "vocabulary lacks; name words of the training data"
                )
            ids.update(of_token)
        self._ids = torch.tensor(sorted(ids))

    def teaches_hard(self, is_noisy: bool) -> bool:
        return is_noisy  # a mass of 1 has no gradient

    def summed(self, looks: Looks) -> Tensor:
        assert self._ids is not None
        impermissible = torch.isin(looks.source, self._ids.to(looks.source.device))
        mass = (looks.weights * impermissible.unsqueeze(1)).sum(-1)
        return of_hidden_mass(mass, looks)
