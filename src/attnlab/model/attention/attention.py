"""Attention(Q, K, V): score, mask, normalise, average; one head or several.

Each of them may have a history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, overload

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.draws import Draws
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.memory import Memory, count_positions
from attnlab.model.attention.score import Score, refuse_former_names
from attnlab.model.attention.unfit_parts import check_parts
from attnlab.model.dropout import Dropout
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.gates import ContextGate
from attnlab.model.histories.history import History, Remembered
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.scopes import Scope, Window

Past = tuple[Remembered, ...]
"""What each head remembers."""


class Attention(nn.Module):
    """context = normalise(score(Q, K)) V.

    The score is minus infinity before the normaliser wherever nothing may be seen.

    Args:
        history: what it remembers from step to step; None for nothing.
        gate: makes another context of the query and the context; None leaves it as it is.
        dropout: rate on the weights that average the values (Vaswani et al. 2017); the weights
            that are shown and remembered are those before it.
    """

    heads = 1

    def __init__(
        self,
        score: Score,
        normaliser: Normaliser,
        scope: Scope,
        history: History | None = None,
        gate: ContextGate | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        refuse_former_names(score)
        check_parts(score, normaliser, scope, history)
        self.score = score
        self.normaliser = normaliser
        self.scope = scope
        self.history = history
        self.gate = gate
        self.dropout = Dropout(dropout)

    @property
    def histories(self) -> Sequence[History]:
        """That of its one head; empty without."""
        return () if self.history is None else (self.history,)

    @property
    def drawing(self) -> Normaliser | None:
        """The normaliser, where training draws weights and must learn from what it drew."""
        return self.normaliser if getattr(self.normaliser, "is_drawn", False) else None

    @property
    def rows_sum_to_one(self) -> bool:
        """Whether the weights are distributions, before a local-p scope changes them."""
        if self.history is None:
            return self.normaliser.rows_sum_to_one
        return self.history.rows_sum_to_one(self.normaliser.rows_sum_to_one)

    @property
    def makes_distributions(self) -> bool:
        """Whether the weights are distributions, in the window of the scope too."""
        return self.rows_sum_to_one and self.scope.keeps_the_sum

    @property
    def changes_keys(self) -> bool:
        """Whether a history changes the projected keys from step to step."""
        return self.history is not None and self.history.changes_keys

    def first_past(self, memory: Memory) -> Past | None:
        """What is remembered before the first step; None without a history."""
        return tuple(history.first(memory) for history in self.histories) or None

    def project(
        self, outputs: Tensor, positions: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Encoder outputs (B, S, D) and positions (B, S) -> keys (B, S, ...) and values (B, S, D).

        The keys are finished, unless a history is going to change them.

        mask: (B, S), False at pads; None where they count as tokens, or where there are none.
        """
        of_keys = positions if self.score.by_position else outputs
        keys = self.score.project_source(of_keys, mask)
        if not self.changes_keys:
            keys = self.score.finish_keys(keys)
        return keys, outputs

    @overload
    def forward(self, query: Tensor, memory: Memory, t: Tensor) -> tuple[Tensor, Tensor]: ...
    @overload
    def forward(
        self, query: Tensor, memory: Memory, t: Tensor, past: Past
    ) -> tuple[Tensor, Tensor, Past]: ...
    def forward(
        self, query: Tensor, memory: Memory, t: Tensor, past: Past | None = None
    ) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Past]:
        """Attend from every query to every key.

        Args:
            query: (B, T, H).
            memory: keys (B, S, ...) and values (B, S, D), as `project` returned them, and the mask.
            t: (B, T), the position of each query in the target.
            past: what is remembered, where this attention has a history; T is then 1.

        Returns:
            context (B, T, D) and attention weights (B, 1, T, S), which are exactly 0 at pads and
            sum to 1 over S (unless `rows_sum_to_one` is false, or a local-p scope does not
            renormalise); with a past also what is remembered after the step.
        """
        remembered = None if past is None else past[0]
        if self.history is not None and remembered is not None:
            remembered = self.history.before(remembered, query[:, 0])
        scores, window = self.scores(query, memory, t, remembered)
        weights, remembered = self.weigh(scores, window, memory, t, remembered)
        context, weights = self.average(weights, memory)
        if self.gate is not None:
            context = self.gate(query, context)
        if self.history is None or remembered is None:
            return context, weights
        after = self.history.after(remembered, query[:, 0], context[:, 0], weights[:, 0, 0])
        return context, weights, (after,)

    def scores(
        self, query: Tensor, memory: Memory, t: Tensor, past: Remembered | None = None
    ) -> tuple[Tensor, Window]:
        """The scores (B, T, S), minus infinity where nothing may be seen, and the window.

        Arguments as for `forward`.
        """
        assert memory.keys is not None
        keys = memory.keys
        # 1. Let the keys know what was seen.
        if self.history is not None and past is not None:
            keys = self.history.change_keys(keys, past)
        if self.changes_keys:
            keys = self.score.finish_keys(keys)
        # 2. Score every key, and hide pads and what lies outside of the window.
        scores = self.score(query, keys)  # (B, T, S)
        window = self.scope(query, t, memory.positions, memory.lengths)
        if memory.mask is not None:
            scores = scores.masked_fill(~memory.mask.unsqueeze(1), -torch.inf)
        if window.inside is not None:
            scores = scores.masked_fill(~window.inside, -torch.inf)
        return scores, window

    def weigh(
        self,
        scores: Tensor,
        window: Window,
        memory: Memory,
        t: Tensor,
        past: Remembered | None = None,
    ) -> tuple[Tensor, Remembered | None]:
        """The weights (B, T, S) of the scores, and the past as the history's `after` gets it.

        Arguments as for `forward`; the scores and the window are those of `scores`.
        """
        change = memory.intervention
        if change is None:
            return self._own_weights(scores, window, memory, past)

        own: Tensor | None = None
        if change.hide != "all":
            own, past = self._own_weights(change.adjusted(scores), window, memory, past)
        weights = change.replaced(own, scores, memory.named_positions, t)
        if self.history is not None and past is not None:
            is_new = torch.ones_like(weights, dtype=torch.bool) if own is None else weights != own
            past = self.history.overrule(past, weights[:, 0], is_new.any(-1)[:, 0])
        return weights, past

    def _own_weights(
        self, scores: Tensor, window: Window, memory: Memory, past: Remembered | None
    ) -> tuple[Tensor, Remembered | None]:
        """The weights that the model itself makes of scores; arguments and result as `weigh`."""
        # 3. Make weights of the scores.
        if self.history is not None and past is not None:
            past = self.history.read_scores(past, scores[:, 0])
        return window.reweigh(self.normalise(scores, past, memory.draws)), past

    def average(self, weights: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Context and weights as `forward` returns them, of weights (B, T, S)."""
        assert memory.values is not None
        # 4. Average the values.
        context = self.dropout(weights.to(memory.values.dtype)) @ memory.values
        return context, weights.unsqueeze(1)

    def normalise(
        self, scores: Tensor, past: Remembered | None, draws: Draws | None = None
    ) -> Tensor:
        """Weights of scores, both (B, T, S); T is 1 where something is remembered.

        draws: notes what is drawn.
        """
        normaliser: Callable[[Tensor], Tensor] = self.normaliser
        if draws is not None:
            normaliser = draws.recording(self.normaliser)
        if self.history is None or past is None:
            return normaliser(scores)
        return self.history.weigh(scores[:, 0], normaliser, past).unsqueeze(1)


class MultiHeadAttention(nn.Module):
    """concat(head_1, ..., head_N) W_O with head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i).

    Vaswani et al. 2017, section 3.2.2, for any score that compares contents.

    Args:
        heads: their number N.
        size: width of the projections of each head.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("head", "gate", "query_size", "value_size")

    def __init__(
        self,
        heads: PositiveInt,
        size: PositiveInt,
        *,
        head: Callable[[int, int], Attention],
        gate: Callable[[int, int, int], ContextGate] | None = None,
        query_size: int,
        value_size: int,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.W_Q = nn.Linear(query_size, heads * size, bias=False)
        self.W_K = nn.Linear(value_size, heads * size, bias=False)
        self.W_V = nn.Linear(value_size, heads * size, bias=False)
        self.W_O = nn.Linear(heads * size, value_size, bias=False)
        self.gate = None if gate is None else gate(query_size, heads * size, heads)
        attentions = [head(size, size) for _ in range(heads)]
        self.attentions: Sequence[Attention] = nn.ModuleList(attentions)  # type: ignore[assignment]
        if any(attention.score.by_position for attention in self.attentions):
            raise ValueError(
                "the location and uniform scores have no keys that heads could project; choose "
                "model/heads=one"
            )

    @property
    def histories(self) -> Sequence[History]:
        """Those of the heads, which all have one, or none has; empty without."""
        return [history for attention in self.attentions for history in attention.histories]

    @property
    def drawing(self) -> Normaliser | None:
        """As that of the first head: they all have the same settings."""
        return self.attentions[0].drawing

    @property
    def rows_sum_to_one(self) -> bool:
        """As that of the first head: they all have a normaliser and a history of one kind."""
        return self.attentions[0].rows_sum_to_one

    @property
    def makes_distributions(self) -> bool:
        """As that of the first head."""
        return self.attentions[0].makes_distributions

    def first_past(self, memory: Memory) -> Past | None:
        """What each head remembers before the first step; None without a history."""
        firsts = (each.first(memory.head(i)) for i, each in enumerate(self.histories))
        return tuple(firsts) or None

    def project(
        self, outputs: Tensor, positions: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Encoder outputs (B, S, D) -> keys (B, N, S, A) and values (B, N, S, size).

        mask: as for `Attention.project`.
        """
        keys = self.W_K(outputs).chunk(self.heads, dim=-1)
        values = self.W_V(outputs).chunk(self.heads, dim=-1)
        projected = [
            attention.project(key, positions, mask)[0]
            for attention, key in zip(self.attentions, keys, strict=True)
        ]
        return torch.stack(projected, dim=1), torch.stack(values, dim=1)

    @overload
    def forward(self, query: Tensor, memory: Memory, t: Tensor) -> tuple[Tensor, Tensor]: ...
    @overload
    def forward(
        self, query: Tensor, memory: Memory, t: Tensor, past: Past
    ) -> tuple[Tensor, Tensor, Past]: ...
    def forward(
        self, query: Tensor, memory: Memory, t: Tensor, past: Past | None = None
    ) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Past]:
        """As `Attention.forward`, for attention weights (B, N, T, S).

        The context is (B, T, D).
        """
        queries = self.W_Q(query).chunk(self.heads, dim=-1)
        contexts: list[Tensor] = []
        weights: list[Tensor] = []
        after: list[Remembered] = []
        for i, attention in enumerate(self.attentions):
            if past is None:
                own_context, own_weights = attention(queries[i], memory.head(i), t)
            else:
                own = attention(queries[i], memory.head(i), t, past[i : i + 1])
                own_context, own_weights, own_after = own
                after.extend(own_after)
            contexts.append(own_context)
            weights.append(own_weights)
        joined = torch.cat(contexts, dim=-1)
        if self.gate is not None:
            joined = self.gate(query, joined)
        context = self.W_O(joined)
        if past is None:
            return context, torch.cat(weights, dim=1)
        return context, torch.cat(weights, dim=1), tuple(after)


def remember(
    encoded: Encoded,
    source_mask: Tensor,
    masked: bool,
    attention: Attention | MultiHeadAttention | None,
    intervention: Intervention | None = None,
) -> Memory:
    """The memory of a batch, with the keys projected once for all steps.

    Args:
        source_mask: (B, S).
        masked: False lets the attention weigh pads, unless the intervention says otherwise.
        attention: None where nothing attends.
    """
    if intervention is not None and intervention.mask_pads is not None:
        masked = intervention.mask_pads
    readable = encoded.readable(source_mask)
    positions = count_positions(readable)
    # A masked pad may stand beyond the longest source; its position is never looked at.
    seen = positions.masked_fill(~readable, 0) if masked else positions
    mask = readable if masked else None
    if mask is None and encoded.attended is not None:
        mask = readable | ~source_mask
    keys, values = None, None
    if attention is not None:
        keys, values = attention.project(encoded.outputs, seen, mask)
    memory = Memory(
        summary=encoded.final.hidden[-1],
        keys=keys,
        values=values,
        mask=mask,
        positions=positions,
        lengths=readable.sum(1),
        source_positions=None if encoded.attended is None else count_positions(source_mask),
    )
    if intervention is None or not intervention.changes_weights:
        return memory
    return memory.under(intervention)
