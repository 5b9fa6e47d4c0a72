"""The choices that make an attention, put together, and the projection before a score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.config.part import Part
from attnlab.config.signature import runtime_arguments
from attnlab.errors import ExperimentError
from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.score import Score, refuse_former_names
from attnlab.model.attention.unfit_parts import UnfitPartError
from attnlab.model.gates import ContextGate
from attnlab.model.histories.history import History
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
        self.makes_weights = self.score.makes_weights
        self.is_logarithm = self.score.is_logarithm

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.score.project_keys(self.R(keys))

    def project_source(self, keys: Tensor, mask: Tensor | None) -> Tensor:
        return self.score.project_source(self.R(keys), mask)

    def finish_keys(self, keys: Tensor) -> Tensor:
        return self.score.finish_keys(keys)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.score(self.P(query), keys)


@dataclass(frozen=True)
class Mechanism:
    """Score x projection x normaliser x scope x history x heads x gate.

    Each goes with each, or is refused by a sentence.
    """

    score: Part[Score]
    normaliser: Part[Normaliser]
    scope: Part[Scope]
    projection: Part[LinearProjection] | None = None
    history: Part[History] | None = None
    heads: Part[MultiHeadAttention] | None = None
    gate: Part[ContextGate] | None = None
    dropout: float = 0.0

    def build(self, query_size: int, value_size: int) -> Attention | MultiHeadAttention:
        """For queries (B, T, query_size) and encoder outputs (B, S, value_size).

        Raises ExperimentError where the choices do not go together.
        """
        if self.heads is None:
            gate = None if self.gate is None else self._gate(query_size, value_size, heads=1)
            return self._one(query_size, value_size, gate)
        if self.gate is not None and "gate" not in runtime_arguments(self.heads.target):
            raise ValueError(
                f"gate {self.gate.target.__name__} is chosen, but the constructor of "
                f"{self.heads.target.__name__} takes none; choose model/gate=none, or model/heads="
                "one or multi"
            )
        return self.heads(
            head=self._one,
            gate=None if self.gate is None else self._gate,  # one for all heads together
            query_size=query_size,
            value_size=value_size,
        )

    def _gate(self, query_size: int, context_size: int, heads: int) -> ContextGate:
        assert self.gate is not None
        return self.gate(query_size=query_size, context_size=context_size, heads=heads)

    def _one(self, query_size: int, value_size: int, gate: ContextGate | None = None) -> Attention:
        try:
            return self._put_together(query_size, value_size, gate)
        except UnfitPartError as error:
            # Else the message begins with the path of the decoder, which builds the attention.
            path = getattr(self, error.part).path
            raise ExperimentError(f"{path}: {error}" if path else str(error)) from error

    def _put_together(
        self, query_size: int, value_size: int, gate: ContextGate | None
    ) -> Attention:
        sizes = {"query_size": query_size, "key_size": value_size}
        score = (
            self.score(**sizes)
            if self.projection is None
            else self.projection(score=self.score, **sizes)
        )
        history = None
        if self.history is not None:
            self._check_history(self.history.target, score)
            history = self.history(
                query_size=query_size, key_size=score.projected_key_size, value_size=value_size
            )
        scope = self.scope(query_size=query_size)
        return Attention(score, self.normaliser(), scope, history, gate, self.dropout)

    def _check_history(self, history: type[History], score: Score) -> None:
        """Raise UnfitPartError where a history does not go with the score or the normaliser."""
        if history.changes_keys and score.by_position:
            raise UnfitPartError(
                "history",
                f"history {history.__name__} is added to the keys, but the location and uniform "
                "scores have none; choose model/history=none, or another model/attention",
            )
        if history.changes_keys and score.projected_key_size is None:
            raise UnfitPartError(
                "history",
                f"history {history.__name__} needs the width of the projected keys, which "
                f"{type(score).__name__} does not give; set projected_key_size in its "
                "constructor, or choose model/history=none",
            )
        if history.makes_weights and self.normaliser.target is not Softmax:
            raise UnfitPartError(
                "history",
                f"history {history.__name__} makes weights of the scores by itself, so that "
                f"{self.normaliser.target.__name__} would do nothing; leave model/normaliser at "
                "softmax, or choose model/history=none",
            )


def mechanism_of(
    score: Part[Score] | None,
    projection: Part[LinearProjection] | None,
    normaliser: Part[Normaliser],
    scope: Part[Scope],
    history: Part[History] | None,
    heads: Part[MultiHeadAttention] | None,
    gate: Part[ContextGate] | None = None,
    dropout: float = 0.0,
) -> Mechanism | None:
    """The mechanism of a model's config, None without an attention.

    Raises ValueError where a choice is made for an attention that is not there.
    """
    if score is not None:
        return Mechanism(score, normaliser, scope, projection, history, heads, gate, dropout)
    if dropout > 0:
        raise ValueError(
            f"attention_dropout drops attention weights, but model.attention is null; set "
            f"model.attention_dropout=0, or choose a model/attention (it is {dropout})"
        )
    idle = {
        "projection": projection is not None,
        "normaliser": normaliser.target is not Softmax,
        "scope": scope.target is not GlobalScope,
        "history": history is not None,
        "heads": heads is not None,
        "gate": gate is not None,
    }
    for name, chosen in idle.items():
        if chosen:
            raise ValueError(
                f"{name} is chosen for an attention, but model.attention is null; choose a "
                f"model/attention, or leave model/{name} at its default"
            )
    return None
