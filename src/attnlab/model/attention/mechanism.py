"""The choices that make an attention, put together."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.config.part import Part
from attnlab.model.attention.attention import Attention
from attnlab.model.attention.coverage import Coverage
from attnlab.model.attention.multi_head import MultiHeadAttention
from attnlab.model.attention.projection import LinearProjection
from attnlab.model.attention.score import Score
from attnlab.model.normaliser.normaliser import Normaliser
from attnlab.model.normaliser.softmax import Softmax
from attnlab.model.scope.global_scope import GlobalScope
from attnlab.model.scope.scope import Scope


@dataclass(frozen=True)
class Mechanism:
    """Score x projection x normaliser x scope x coverage x heads: each goes with each, or is refused by a sentence."""

    score: Part[Score]
    normaliser: Normaliser
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
        score = self.score(**sizes) if self.projection is None else self.projection(score=self.score, **sizes)
        if self.coverage is not None and score.by_position:
            raise ValueError(
                "coverage is told to the keys, but the location score has none; choose model/coverage=none"
            )
        coverage = None if self.coverage is None else self.coverage(key_size=score.keys_size)
        return Attention(score, self.normaliser, self.scope(query_size=query_size), coverage)


def mechanism_of(
    score: Part[Score] | None,
    projection: Part[LinearProjection] | None,
    normaliser: Normaliser,
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
        "normaliser": not isinstance(normaliser, Softmax),
        "scope": scope.target is not GlobalScope,
        "coverage": coverage is not None,
        "heads": heads is not None,
    }
    for name, chosen in idle.items():
        if chosen:
            raise ValueError(
                f"{name} is chosen for an attention, but model.attention is null; choose a model/attention, or leave "
                f"model/{name} at its default"
            )
    return None
