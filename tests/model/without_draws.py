"""A model that draws nothing in training, so that two passes of it can be compared."""

from __future__ import annotations

from attnlab.model.histories.monotonic import ReadingOn
from attnlab.model.normalisers.hard import Hard
from attnlab.model.normalisers.reinforce import Reinforce
from attnlab.model.seq2seq import Seq2Seq


def without_draws(model: Seq2Seq) -> Seq2Seq:
    """The model with the noise of its attention switched off, in place."""
    for module in model.modules():
        if isinstance(module, Hard | ReadingOn):
            module.noise = False
        if isinstance(module, Reinforce):
            module.eval()
    return model
