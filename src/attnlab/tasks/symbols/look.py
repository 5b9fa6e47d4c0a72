"""One look of a model back at its source, as the model itself took it.

Axes: S source tokens, Q query, D values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor

from attnlab.model.attention.memory import Memory
from attnlab.model.histories.history import Remembered

Masking = Literal["before", "after"]
"""Where the mask stands: minus infinity before the softmax, or zero after it."""


@dataclass(frozen=True)
class Look:
    """One look of a model back at its source, as the model itself took it.

    memory: of one sentence.
    position: of the step in the target.
    past: what each head remembered before each step up to this one; None without a history.
    weights: of each head (S,).
    context: (D,), of the attention.
    tokens: S, with the pads.
    """

    memory: Memory
    position: int
    weights: Sequence[Tensor]
    context: Tensor
    tokens: Sequence[str]
    past: Sequence[Sequence[Remembered]] | None = None

    def memory_of(self, head: int) -> Memory:
        """What one head looks at, with the intervention that is on it."""
        assert self.memory.keys is not None
        return self.memory.head(head) if self.memory.keys.dim() == 4 else self.memory

    def asked_by(self, query: Tensor, history: Any, head: int) -> Look:
        """The look whose head has what `History.before` makes of its past and the query (Q,)."""
        if self.past is None:
            return self
        *earlier, last = self.past[head]
        pasts = list(self.past)
        pasts[head] = [*earlier, history.before(last, query.to(last.weights)[None])]
        return replace(self, past=pasts)
