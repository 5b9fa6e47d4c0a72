"""Attention(Q, K, V) as one layer for any model: parts by name, no config and no memory to fill."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attnlab.config.binding import bind_settings
from attnlab.config.part import call
from attnlab.config.signature import (
    accepted_runtime_arguments,
    declared_runtime_arguments,
    runtime_arguments,
    settings_of,
    takes_more_settings,
)
from attnlab.config.target import class_named, known_targets
from attnlab.errors import ExperimentError
from attnlab.model.attention.attention import Attention as MemoryAttention
from attnlab.model.attention.mechanism import LinearProjection
from attnlab.model.attention.memory import Memory, count_positions
from attnlab.model.attention.score import Score
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.scopes import Scope

T = TypeVar("T")

SIZES = ("query_size", "key_size")


class Attention(nn.Module):
    """context = normalise(score(query, keys)) values.

    Args:
        score: a name ("bahdanau", "dot", ...), a subclass of Score, an instance of one, or a
            function that makes one of query_size and key_size.
        query_size: H.
        key_size: D of the keys; the query's by default.
        normaliser: a name, a subclass or an instance of Normaliser, or a function from scores (B,
            T, S), minus infinity where nothing may be seen, to weights (B, T, S).
        scope: a name, a subclass or an instance of Scope, or a function that makes one of
            query_size.
        projection: a common width to which query and keys are projected before the score.
        settings: those of the score, the normaliser and the scope, such as size=256 or width=10;
            docs/attention_module.md lists them.

    Raises ValueError for an unknown name, a wrong or missing setting, and choices that do not go
    together; TypeError for an unknown setting and a part that cannot be used.
    """

    def __init__(
        self,
        score: str | type[Score] | Score | Callable[..., Score],
        *,
        query_size: int,
        key_size: int | None = None,
        normaliser: str | type[Normaliser] | Callable[[Tensor], Tensor] = "softmax",
        scope: str | type[Scope] | Scope | Callable[..., Scope] = "global",
        projection: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.query_size = query_size
        self.key_size = query_size if key_size is None else key_size

        # 1. Find the parts, and give each the settings that it has.
        of_score = _Part(Score, score)
        of_normaliser = _Part(Normaliser, normaliser)
        of_scope = _Part(Scope, scope)
        _hand_out(settings, [of_score, of_normaliser, of_scope])

        if getattr(of_normaliser.chosen, "is_drawn", False):
            raise ValueError(
                f"normaliser {normaliser!r} draws its weights and learns from the loss that "
                'follows, which one layer does not know; choose normaliser="hard" with noise=True'
            )

        # 2. Build them for these widths. A function that is a normaliser is one already.
        make_score: Callable[..., Score] = of_score
        if projection is not None:
            make_score = functools.partial(LinearProjection, projection, score=of_score)
        chosen = of_normaliser.chosen
        self.attention = MemoryAttention(
            score=make_score(query_size=self.query_size, key_size=self.key_size),
            normaliser=of_normaliser() if inspect.isclass(chosen) else chosen,
            scope=of_scope(query_size=self.query_size),
        )

    def forward(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        t: Tensor | int | None = None,
        return_scores: bool = False,
    ) -> tuple[Tensor, ...]:
        """Attend from every query to every key.

        Args:
            query: (B, T, H), or (B, H) for one query a row.
            keys: (B, S, D).
            values: (B, S, E); the keys by default.
            mask: (B, S) bool, True at real keys; None where all are. Positions count the real keys
                from 0 on.
            t: positions of the queries for a local scope, (B, T), (T,) or a number; 0, 1, ..., T-1
                by default. For a query (B, H): (B,) or a number; 0 by default.
            return_scores: whether to return the scores, too.

        Returns:
            context (B, T, E) and attention weights (B, T, S), or (B, E) and (B, S) for a query (B,
            H). Weights are exactly 0 at pads and sum to 1 over S (unless a local-p scope does not
            renormalise). In a row without a real key, both are zeros.

            With `return_scores` a third tensor of the weights' shape: the scores as the normaliser
            takes them, s · h for "dot", and minus infinity at pads, outside of a local scope and at
            keys that an intervention hides. In a row without a real key all are minus infinity.
            Weights that an intervention sets, permutes or heats leave the scores as they are.

        Raises ValueError for wrong shapes and a source too long for the location score;
        RuntimeError where `t` does not expand to (B, T); TypeError for a mask that is not bool.
        """
        memory = self.remember(keys, values, mask)
        return self.attend(query, memory, t=t, return_scores=return_scores)

    def remember(
        self, keys: Tensor, values: Tensor | None = None, mask: Tensor | None = None
    ) -> Memory:
        """What `attend` needs of the keys, projected once, for a decoder that asks step by step."""
        values = keys if values is None else values
        if keys.dim() != 3 or keys.shape[2] != self.key_size:
            raise ValueError(f"keys must be (B, S, {self.key_size}), got {_shape(keys)}")
        if values.dim() != 3 or values.shape[:2] != keys.shape[:2]:
            raise ValueError(
                f"values must be ({keys.shape[0]}, {keys.shape[1]}, E) as the keys, got "
                f"{_shape(values)}"
            )
        if mask is not None and mask.dtype != torch.bool:
            raise TypeError(f"mask must be bool, True at real keys, got {mask.dtype}")
        if mask is not None and mask.shape != keys.shape[:2]:
            raise ValueError(
                f"mask must be ({keys.shape[0]}, {keys.shape[1]}) as the keys, got {_shape(mask)}"
            )

        real = keys.new_ones(keys.shape[:2], dtype=torch.bool) if mask is None else mask
        positions = count_positions(real)
        try:
            projected, _ = self.attention.project(keys, positions.masked_fill(~real, 0), mask)
        except ExperimentError as error:
            raise ValueError(str(error).removeprefix("model.attention.")) from error
        no_summary = keys.new_empty(len(keys), 0)  # only decoders without attention read it
        return Memory(no_summary, projected, values, mask, positions, real.sum(1))

    def attend(
        self,
        query: Tensor,
        memory: Memory,
        *,
        t: Tensor | int | None = None,
        return_scores: bool = False,
    ) -> tuple[Tensor, ...]:
        """As `forward`, with what `remember` returned, also `under` an intervention."""
        single = query.dim() == 2
        queries = query.unsqueeze(1) if single else query
        if queries.dim() != 3 or queries.shape[::2] != (len(memory.lengths), self.query_size):
            rows, width = len(memory.lengths), self.query_size
            raise ValueError(
                f"query must be ({rows}, T, {width}) or ({rows}, {width}), got {_shape(query)}"
            )
        t = torch.as_tensor(torch.arange(queries.shape[1]) if t is None else t, device=query.device)
        t = t.unsqueeze(1) if single and t.dim() == 1 else t
        t = t.expand(queries.shape[:2])

        # A row without a real key attends to its pads, so that nothing is divided by 0; then it
        # gets its zeros.
        empty = memory.lengths == 0
        if memory.mask is not None:
            mask = memory.mask | empty.unsqueeze(1)
            memory = replace(memory, mask=mask, lengths=memory.lengths.clamp(min=1))
        scores, window = self.attention.scores(queries, memory, t)
        weights, _ = self.attention.weigh(scores, window, memory, t)
        context, weights = self.attention.average(weights, memory)

        is_empty = empty.view(-1, 1, 1)
        found = [context.masked_fill(is_empty, 0), weights[:, 0].masked_fill(is_empty, 0)]
        if return_scores:
            found.append(scores.masked_fill(is_empty, -torch.inf))
        return tuple(each[:, 0] for each in found) if single else tuple(found)


@functools.cache
def classes_by_name(kind: type[T]) -> Mapping[str, type[T]]:
    """The package's classes of a kind, by their names in a call.

    `NormedBahdanauScore` is "normed_bahdanau", `LocalM` is "local_m".

    Those that need more of the program than widths, such as a projection around a score, or a
    training that learns from their draws, have no name.
    """
    classes = [class_named(target, kind) for target in known_targets(kind)]
    usable = [
        found
        for found in classes
        if set(runtime_arguments(found)) <= set(SIZES) and not getattr(found, "is_drawn", False)
    ]
    return {
        re.sub(r"(?<=.)(?=[A-Z])", "_", c.__name__.removesuffix(kind.__name__)).lower(): c
        for c in usable
    }


class _Part:
    """A score, normaliser or scope as the caller chose it, and the settings given for it."""

    def __init__(self, kind: type, choice: Any) -> None:
        self.kind = kind
        names = classes_by_name(kind)
        word = kind.__name__.lower()
        if isinstance(choice, str) and choice not in names:
            raise ValueError(f"{word} must be one of {', '.join(names)}, got {choice!r}")
        self.chosen: Any = names[choice] if isinstance(choice, str) else choice
        is_right = (
            issubclass(self.chosen, kind) if inspect.isclass(self.chosen) else callable(self.chosen)
        )
        if not is_right:
            raise TypeError(
                f"{word} must be one of {', '.join(names)}, or a {kind.__name__} of your own, got "
                f"{choice!r}"
            )
        # An instance or a function has settings of its own already.
        is_class = inspect.isclass(self.chosen)
        self.settings = list(settings_of(self.chosen)) if is_class else []
        self.runtime_arguments = declared_runtime_arguments(kind)
        self.takes_more = is_class and takes_more_settings(self.chosen)
        self.given: dict[str, Any] = {}

    def __call__(self, **sizes: int) -> Any:
        """The part for these widths; raises ValueError for a wrong or missing setting."""
        if isinstance(self.chosen, self.kind):
            return self.chosen
        if not inspect.isclass(self.chosen):
            return self.chosen(**sizes)
        found = self.chosen
        try:
            values = bind_settings(self.given, found)
        except ExperimentError as error:
            raise ValueError(f"{found.__name__}: {'; '.join(error.problems)}") from error
        return call(found, values | accepted_runtime_arguments(found, sizes))


def _hand_out(settings: dict[str, Any], parts: list[_Part]) -> None:
    """Give each part its settings.

    Raises TypeError for one that no part has, or that two parts have.
    """
    for name, value in settings.items():
        owners = [part for part in parts if name in part.settings]
        if not owners:
            owners = [
                part for part in parts if part.takes_more and name not in part.runtime_arguments
            ]
        if not owners:
            having = [
                f"{part.chosen.__name__} has: {', '.join(part.settings)}"
                for part in parts
                if part.settings
            ]
            raise TypeError(
                f"{name} is not a setting; "
                f"{'; '.join(having) or 'the chosen parts have no settings'}"
            )
        if len(owners) > 1:
            both = " and of ".join(part.chosen.__name__ for part in owners)
            raise TypeError(
                f"{name} is a setting of {both}; give one of them as an instance or a function"
            )
        owners[0].given[name] = value


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
