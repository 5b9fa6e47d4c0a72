"""Which parts of an attention do not go together, and why."""

from __future__ import annotations

from typing import Literal

from attnlab.model.attention.score import Score
from attnlab.model.attention.uniform import UniformScore
from attnlab.model.histories.history import History
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.scopes import Scope


class UnfitPartError(ValueError):
    """A part of an attention does not go with another one.

    part: which one, by its name in a model's config: `normaliser`, `scope` or `history`.
    """

    def __init__(self, part: Literal["normaliser", "scope", "history"], message: str) -> None:
        super().__init__(message)
        self.part = part


def check_parts(
    score: Score, normaliser: Normaliser, scope: Scope, history: History | None
) -> None:
    """Raise UnfitPartError for a part that does not go with another one.

    normaliser: a function may stand in its place, of which nobody knows what it makes.
    """
    _check_window(normaliser, scope)
    _check_signs(score, normaliser, scope, history)
    _check_draws(score, normaliser, history)


def _check_window(normaliser: Normaliser, scope: Scope) -> None:
    """Raise UnfitPartError where a window could not learn its centre."""
    if getattr(normaliser, "is_hard", False) and getattr(scope, "renormalise", False):
        raise UnfitPartError(
            "scope",
            "one token has all the weight, so that a renormalised window changes nothing, and "
            "its centre is never learned; choose model.scope.renormalise=false, or another "
            "model/normaliser than hard and gumbel",
        )


def _check_signs(
    score: Score, normaliser: Normaliser, scope: Scope, history: History | None
) -> None:
    """Raise UnfitPartError where a part needs weights of another sign than are made."""
    is_function = not isinstance(normaliser, Normaliser)
    name = getattr(normaliser, "__name__", type(normaliser).__name__)
    is_signed = getattr(normaliser, "is_signed", False)
    if score.makes_weights and not is_signed and not is_function:
        raise UnfitPartError(
            "normaliser",
            "this model/attention makes weights of any sign by itself, which normaliser "
            f"{name} would change; choose model/normaliser=none (of attnlab.Attention: "
            'normaliser="none"), or another model/attention',
        )
    if not is_signed:
        return
    if isinstance(score, UniformScore):
        raise UnfitPartError(
            "normaliser",
            f"the uniform score is 0 everywhere, and normaliser {name} makes weights of 0 of it; "
            "choose model/normaliser=softmax, or another model/attention",
        )
    if score.is_logarithm:
        raise UnfitPartError(
            "normaliser",
            "the scores of this model/attention are logarithms, of which normaliser "
            f"{name} would make weights as they are; choose model/normaliser=softmax (of "
            'attnlab.Attention: normaliser="softmax"), or another model/attention',
        )
    if getattr(scope, "renormalise", False):
        raise UnfitPartError(
            "scope",
            f"weights of normaliser {name} may be negative, so that a renormalised window would "
            "divide by a sum near 0; choose model.scope.renormalise=false, or another "
            "model/normaliser",
        )
    if history is not None and history.needs_positive_weights:
        raise UnfitPartError(
            "history",
            f"history {type(history).__name__} needs weights that are at least 0, but those of "
            f"normaliser {name} may be negative; choose model/history=none (of coverage also "
            "model.history.loss_weight=0), or another model/normaliser",
        )


def _check_draws(score: Score, normaliser: Normaliser, history: History | None) -> None:
    """Raise UnfitPartError where a part could not learn from weights that are drawn."""
    if not getattr(normaliser, "is_drawn", False):
        return
    name = type(normaliser).__name__
    if isinstance(score, UniformScore):
        raise UnfitPartError(
            "normaliser",
            f"the uniform score is 0 everywhere, so that normaliser {name} would have nothing to "
            "learn from what it draws; choose model/normaliser=softmax, or another model/attention",
        )
    if history is not None and history.loss_name is not None and history.loss_weight > 0:
        raise UnfitPartError(
            "history",
            f"the loss of history {type(history).__name__} is on attention weights, but those of "
            f"normaliser {name} are drawn and have no gradient; choose "
            "model.history.loss_weight=0, or another model/normaliser",
        )
