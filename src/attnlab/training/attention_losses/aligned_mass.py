"""Attention that learns to hide the tokens that are aligned."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import PositiveFloat
from torch import Tensor

from attnlab.training.attention_losses.attention_loss import AttentionLoss, Looks
from attnlab.training.attention_losses.impermissible_mass import of_hidden_mass


class AlignedMass(AttentionLoss):
    """- log(1 - m_t), with m_t the weight of the source tokens that target token t has links to.

    Pruthi et al. 2020, "Learning to deceive with attention-based explanations", equation 1, with
    the aligned source tokens as the impermissible ones, as in their section on sequence to sequence
    tasks: the model is to use these tokens, and to show no attention to them. Tokens without a gold
    link have no such loss. An m above 1 - 1e-6 counts as that.

    Args:
        weight: factor of the loss, λ.
        links: the `sure` gold links alone, or the `possible` ones, too.
    """

    name: ClassVar[str] = "aligned_mass_loss"
    needs_links: ClassVar[bool] = True
    needs_positive_weights = True

    def __init__(self, weight: PositiveFloat, links: Literal["sure", "possible"]) -> None:
        self.weight = weight
        self.links = links

    def teaches_hard(self, is_noisy: bool) -> bool:
        return is_noisy  # a mass of 1 has no gradient

    def summed(self, looks: Looks) -> Tensor:
        assert looks.linked is not None
        mass = (looks.weights * looks.linked).sum(-1)
        return of_hidden_mass(mass, looks)
