"""The choices that make an attention, put together, and the projection before a score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.config.part import Part
from attnlab.model.attention.attention import Attention, Coverage, MultiHeadAttention
from attnlab.model.attention.score import Score, refuse_former_names
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.scopes import GlobalScope, Scope


class LinearProjection(Score):
    """score(P s, R h): any score, over linear projections of query and keys to one width.

    Vaswani et al. 2017, section 3.2.2, for one head.

    Args:
        size: the common width.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("score", "query_size", "key_size")

    def __init__(
        self, size: PositiveInt, *, score: Callable[..., Score], query_size: int, key_size: int
    ) -> None:
        super().__init__()
        self.P = nn.Linear(query_size, size, bias=False)
        self.R = nn.Linear(key_size, size, bias=False)
        self.score: Score = score(query_size=size, key_size=size)
        refuse_former_names(self.score)
        if self.score.by_position:
            raise ValueError(
                "the location and uniform scores have no keys to project; choose "
                "model/projection=none (of attnlab.Attention: no projection)"
            )
        self.projected_key_size = self.score.projected_key_size

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.score.project_keys(self.R(keys))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.score(self.P(query), keys)


@dataclass(frozen=True)
class Mechanism:
    """Score x projection x normaliser x scope x coverage x heads.

    Each goes with each, or is refused by a sentence.
    """

    score: Part[Score]
    normaliser: Part[Normaliser]
    scope: Part[Scope]
    projection: Part[LinearProjection] | None = None
    coverage: Part[Coverage] | None = None
    heads: Part[MultiHeadAttention] | None = None

    def build(self, query_size: int, value_size: int) -> Attention | MultiHeadAttention:
        """For queries (B, T, query_size) and encoder outputs (B, S, value_size).

        Raises ExperimentError where the choices do not go together.
        """
        if self.heads is None:
            return self._one(query_size, value_size)
        return self.heads(head=self._one, query_size=query_size, value_size=value_size)

    def _one(self, query_size: int, value_size: int) -> Attention:
        sizes = {"query_size": query_size, "key_size": value_size}
        score = (
            self.score(**sizes)
            if self.projection is None
            else self.projection(score=self.score, **sizes)
        )
        if self.coverage is not None and score.by_position:
            raise ValueError(
                "coverage is added to the keys, but the location and uniform scores have none; "
                "choose model/coverage=none"
            )
        if self.coverage is not None and score.projected_key_size is None:
            raise ValueError(
                f"coverage needs the width of the projected keys, which {type(score).__name__} "
                "does not give; set projected_key_size in its constructor, or choose "
                "model/coverage=none"
            )
        coverage = None
        if self.coverage is not None:
            coverage = self.coverage(key_size=score.projected_key_size)
        return Attention(score, self.normaliser(), self.scope(query_size=query_size), coverage)


def mechanism_of(
    score: Part[Score] | None,
    projection: Part[LinearProjection] | None,
    normaliser: Part[Normaliser],
    scope: Part[Scope],
    coverage: Part[Coverage] | None,
    heads: Part[MultiHeadAttention] | None,
) -> Mechanism | None:
    """The mechanism of a model's config, None without an attention.

    Raises ValueError where a choice is made for an attention that is not there.
    """
    if score is not None:
        return Mechanism(score, normaliser, scope, projection, coverage, heads)
    idle = {
        "projection": projection is not None,
        "normaliser": normaliser.target is not Softmax,
        "scope": scope.target is not GlobalScope,
        "coverage": coverage is not None,
        "heads": heads is not None,
    }
    for name, chosen in idle.items():
        if chosen:
            raise ValueError(
                f"{name} is chosen for an attention, but model.attention is null; choose a "
                f"model/attention, or leave model/{name} at its default"
            )
    return None
