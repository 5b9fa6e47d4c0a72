"""The base class of losses on attention weights.

Axes: B batch, T target length, S source length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import SourceBatch
from attnlab.config.part import Part
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.training.unlearned_weights import weights_of

Links = Callable[[int], NDArray[np.int64]]
"""The gold links of a row: (n, 2) [target position, source position]."""


@dataclass(frozen=True)
class Looks:
    """Where a batch looked. A classifier looks once, so that its T is 1.

    weights: the mean over the heads.
    linked: True where a gold link is; None where the loss asks for none.
    """

    weights: Tensor  # (B, T, S)
    source: Tensor  # (B, S) long
    source_mask: Tensor  # (B, S) bool
    target_mask: Tensor  # (B, T) bool
    linked: Tensor | None = None  # (B, T, S) bool


class AttentionLoss(ABC):
    """A term of the loss that attention weights alone decide.

    A subclass defines `summed`, sets `name` and `weight`, and may need gold links. Its constructor
    takes its settings.

    name: of its mean in the tracker, `train/<name>`.
    weight: its factor beside the negative log-likelihood.
    needs_links: whether it reads gold links, which only sentence pairs have.
    needs_positive_weights: whether it has no meaning, or no least value, for negative weights.
    links: which of them, the `sure` ones alone by default, or the `possible` ones, too.
    """

    name: ClassVar[str]
    needs_links: ClassVar[bool] = False

    needs_positive_weights: bool = False
    weight: float
    links: Literal["sure", "possible"] = "sure"

    def read_vocabulary(self, tokenizer: Tokenizer) -> None:  # noqa: B027 (optional)
        """Look up what it must know of the source's vocabulary, before training.

        Raises ValueError where the vocabulary lacks something. The default needs nothing.
        """

    def teaches_hard(self, is_noisy: bool) -> bool:
        """Whether weights learn from it that are always 0 but for one, which is 1.

        is_noisy: whether training draws which one, so that it also comes upon others than the best.
        """
        return True

    @abstractmethod
    def summed(self, looks: Looks) -> Tensor:
        """The loss of all real target tokens, added up, without its factor."""


def read_source_vocabulary(loss: AttentionLoss | None, tokenizer: Tokenizer) -> None:
    """Let a loss look up the source's vocabulary; raise ExperimentError where something lacks."""
    if loss is None:
        return
    try:
        loss.read_vocabulary(tokenizer)
    except ValueError as error:
        raise ExperimentError(str(error)) from error


def check_signs(loss: AttentionLoss | None, normaliser: Part[Normaliser] | None) -> list[str]:
    """A sentence where a loss needs weights that this normaliser does not make; else nothing.

    normaliser: of the model's config.
    """
    if loss is None or not loss.needs_positive_weights or normaliser is None:
        return []
    if not normaliser.target.is_signed:
        return []
    return [
        f"training.attention_loss {type(loss).__name__} needs weights that are at least 0, but "
        f"those of {normaliser.target.__name__} may be negative; choose "
        "training/attention_loss=none, or another model/normaliser"
    ]


def check_hard(loss: AttentionLoss | None, normaliser: Part[Normaliser] | None) -> list[str]:
    """A sentence where a loss teaches nothing to weights that are always hard; else nothing.

    normaliser: of the model's config. `draw_problems` has the sentence for one that draws weights
        without a gradient.
    """
    if loss is None or normaliser is None:
        return []
    target = normaliser.target
    is_noisy = bool(normaliser.values.get("noise"))
    if not target.is_hard or target.is_drawn or loss.teaches_hard(is_noisy):
        return []
    others = "softmax or gumbel" if loss.teaches_hard(is_noisy=True) else "softmax"
    return [
        f"training.attention_loss {type(loss).__name__} teaches nothing to weights of which one is "
        f"always 1 and the others 0, as those of {target.__name__}; choose "
        f"training/attention_loss=none, or another model/normaliser, such as {others}"
    ]


def check_learns(loss: AttentionLoss | None, model: Mapping[str, Any]) -> list[str]:
    """A sentence where a loss is on weights that no parameter changes; else nothing.

    model: the settings by their names, as a config's part has them.
    """
    if loss is None or model.get("attention") is None or weights_of(model) == "learned":
        return []
    return [
        f"training.attention_loss is {type(loss).__name__}, but model.attention is UniformScore, "
        "whose weights nothing can change; choose training/attention_loss=none, or another "
        "model/attention"
    ]


def of_real_tokens(of_tokens: Tensor, looks: Looks) -> Tensor:
    """The sum of a loss (B, T) over the real target tokens."""
    return of_tokens.masked_fill(~looks.target_mask, 0).sum()


def linked_places(links: Links, batch: SourceBatch, target_mask: Tensor) -> Tensor:
    """(B, T, S) bool: True where a gold link joins a target and a source token of the batch.

    Pads may stand on either side.
    """
    first_source = batch.source_mask.int().argmax(1).tolist()
    first_target = target_mask.int().argmax(1).tolist()
    places = [np.empty((0, 3), dtype=np.int64)]
    for number, row in enumerate(batch.rows.tolist()):
        starts = np.array([first_target[number], first_source[number]])
        places.append(np.insert(links(row) + starts, 0, number, axis=1))
    joined = torch.from_numpy(np.concatenate(places)).to(target_mask.device)
    linked = torch.zeros(
        (*target_mask.shape, batch.source_mask.shape[1]), dtype=torch.bool, device=joined.device
    )
    linked[joined[:, 0], joined[:, 1], joined[:, 2]] = True
    return linked
