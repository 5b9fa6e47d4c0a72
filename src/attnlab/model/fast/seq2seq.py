"""The pass of a whole batch, with its weights' gradients after it."""

from __future__ import annotations

from typing import Any

from attnlab.model.fast.linear import gradients_after_the_pass
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.unrolled import Unrolled


class FastSeq2Seq(Seq2Seq):
    """What `forward` returns has gradients, but these have none of their own."""

    @gradients_after_the_pass()
    def forward(self, *args: Any, **kwargs: Any) -> Unrolled:
        return super().forward(*args, **kwargs)
