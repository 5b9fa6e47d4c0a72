"""The base class of histories, which let an attention remember what it saw.

Axes: B batch, S source length, A projected keys, Q query, D values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

from torch import Tensor, nn

from attnlab.model.attention.equal_scores import OfEqualScores
from attnlab.model.attention.memory import Memory, rows_of


@dataclass(frozen=True)
class Remembered:
    """What a head remembers before a step.

    A history of one's own may derive a record with further fields: tensors whose first axis is the
    batch, so that the searches can select hypotheses.
    """

    weights: Tensor  # (B, S), in float32 at least: of the last step, or a sum over several

    def select(self, rows: Tensor) -> Self:
        """The record of some rows of the batch, in their order; a row may be named twice."""
        return rows_of(self, rows)


RememberedT = TypeVar("RememberedT", bound=Remembered)


class History(nn.Module, ABC, Generic[RememberedT]):
    """What an attention remembers from step to step, and what it makes of it.

    A subclass defines `first` and `after`, and one or both of `change_keys` and `weigh`; `before`
    hands them the query of their step, and `read_scores` hands `weigh` and `after` its scores. Its
    constructor takes its settings, and whichever of the
    run-time arguments it needs: the widths `query_size` Q, `key_size` A of the projected keys and
    `value_size` D. Each head has a history of its own.

    changes_keys: whether it changes the projected keys, which a score must then have.
    needs_positive_weights: whether it makes no sense of weights below 0.
    makes_weights: whether `weigh` makes weights of the scores by itself, without the normaliser.
    loss_name: what its loss is called in the tracker; None where it has none.
    loss_weight: factor of that loss beside the negative log-likelihood.
    of_equal_scores: what weights it makes of them, as a normaliser's attribute of this name.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("query_size", "key_size", "value_size")

    changes_keys: ClassVar[bool] = False
    makes_weights: ClassVar[bool] = False
    needs_positive_weights: bool = False
    loss_name: ClassVar[str | None] = None
    loss_weight: float = 0.0
    of_equal_scores: OfEqualScores = "learned"

    def __init__(self) -> None:
        super().__init__()

    def rows_sum_to_one(self, of_normaliser: bool) -> bool:
        """Whether the weights of a row sum to 1.

        of_normaliser: whether those of the normaliser do.
        """
        return of_normaliser

    @abstractmethod
    def first(self, memory: Memory) -> RememberedT:
        """What is remembered before the first step.

        memory: of all rows; of one head.
        """

    def before(self, past: RememberedT, query: Tensor) -> RememberedT:
        """What `change_keys`, `weigh` and `after` of a step get of what is remembered.

        For a history whose weights depend on the query of their step.

        Args:
            past: what is remembered.
            query: (B, Q), of the step.
        """
        return past

    def read_scores(self, past: RememberedT, scores: Tensor) -> RememberedT:
        """What `weigh` and `after` of a step get of what is remembered, where both need the scores.

        Args:
            past: what is remembered, as `before` left it.
            scores: (B, S), of the step, minus infinity where nothing may be seen.
        """
        return past

    def overrule(self, past: RememberedT, weights: Tensor, rows: Tensor) -> RememberedT:
        """What `after` gets where an intervention has set other weights than those of `weigh`.

        For a history that remembers more of the choice of a step than its weights.

        Args:
            past: what is remembered, as `read_scores` left it.
            weights: (B, S), of the step, as the intervention has left them.
            rows: (B,) bool, where they differ.
        """
        return past

    def change_keys(self, keys: Tensor, past: RememberedT) -> Tensor:
        """The projected keys (B, S, A) as the score of this step reads them."""
        return keys

    def weigh(
        self, scores: Tensor, normalise: Callable[[Tensor], Tensor], past: RememberedT
    ) -> Tensor:
        """The weights (B, S) of this step.

        Args:
            scores: (B, S), minus infinity where nothing may be seen.
            normalise: makes weights of scores.
            past: what is remembered.
        """
        return normalise(scores)

    @abstractmethod
    def after(
        self, past: RememberedT, query: Tensor, context: Tensor, weights: Tensor
    ) -> RememberedT:
        """What is remembered after a step.

        Args:
            past: what was remembered before it.
            query: (B, Q), of the step.
            context: (B, D), of the step and of this head.
            weights: (B, S), of the step, as an intervention may have left them.
        """

    def loss(self, past: RememberedT, weights: Tensor) -> Tensor:
        """The loss (B,) of a step with these weights (B, S), without its factor.

        Only where it has a `loss_name`.
        """
        raise NotImplementedError
