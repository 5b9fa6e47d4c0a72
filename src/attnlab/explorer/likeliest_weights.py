"""The attention weights of one step that make a token likeliest.

Axes: S source tokens, R rows of weights that are tried side by side, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.batch import BOS
from attnlab.errors import ExperimentError
from attnlab.explorer.analysis import NO_EDIT, Edit, Source, known_ids, rounded
from attnlab.inference.requests import NO_CHANGE
from attnlab.inference.translator import Translator
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.memory import Memory
from attnlab.search.search import next_log_probs

STEPS = 40
FIRST_RATE = 1.0


@dataclass(frozen=True)
class GivenWeights(Intervention):
    """Weights that have a gradient, (R, S), one row for each row of the batch, at whatever step is taken."""

    rows: Tensor | None = None

    def weigh(self, scores: Tensor, weigh: Callable[[Tensor], Tensor], positions: Tensor, t: Tensor) -> Tensor:
        assert self.rows is not None
        return self.rows.unsqueeze(1).expand_as(scores)


def likeliest_weights(
    translator: Translator,
    text: str,
    target: Sequence[int],
    step: int,
    token: int | None = None,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """Weights on the simplex under which a token of a target is likeliest, as far as ascent finds them.

    It starts from the model's own weights, uniform ones, and each source token alone, side by side, and takes steps of
    exponentiated gradient (Kivinen and Warmuth 1997), each only where the probability does not fall.

    Args:
        target: ids of a target; what stands before `step` is fed.
        token: the id of the token; None for the target's own.

    Returns:
        weights (S,), and the log-probability of the token in nats: under the model's own weights, then after each step.

    Raises ExperimentError for a step that the target lacks, a model without attention, a token that is unknown.
    """
    source = Source.read(translator, text, edit, intervene)
    model = translator.model
    if model.decoder.attention is None:
        raise ExperimentError("the model has no attention whose weights could be changed")
    if not 0 <= step < len(target):
        raise ExperimentError(f"step must be between 0 and {len(target) - 1}, got {step}")
    before = known_ids(translator, target)[:step]
    (wanted,) = known_ids(translator, [target[step] if token is None else token])
    batch = source.batch([])
    with torch.no_grad():
        memory, state = model.encode(batch.source, batch.source_mask, intervene)
        last, *rest = [torch.tensor([each]) for each in (BOS, *before)]
        for following in rest:
            _, state, _ = model.step(last, state, memory)
            last = following
        _, _, own = model.step(last, state, memory)
    assert own is not None

    def log_prob(rows: Tensor) -> Tensor:
        """(R, S) -> (R,)."""
        same = torch.zeros(len(rows), dtype=torch.long)
        given = memory.select(same)
        given = Memory(**{**vars(given), "intervention": GivenWeights(rows=rows)})
        logits, _, _ = model.step(last[same], state.select(same), given)
        return next_log_probs(logits)[:, wanted]

    with torch.no_grad():
        visible = own.new_ones(own.shape[1]) if memory.mask is None else memory.mask[0].to(own.dtype)
        alone = torch.diag(visible)[visible.bool()]
        starts = torch.cat([own, visible.unsqueeze(0) / visible.sum(), alone])
        rows = torch.cat([starts, 0.9 * starts + 0.1 * starts[1]])  # a zero would stay one
        reached = log_prob(rows)
    trace, rates = [float(reached[0]), float(reached.max())], torch.full_like(reached, FIRST_RATE)
    for _ in range(STEPS):
        leaf = rows.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(log_prob(leaf).sum(), leaf)
        grown = rows * (rates.unsqueeze(1) * (gradient - gradient.amax(1, keepdim=True))).exp()
        proposed = grown / grown.sum(1, keepdim=True)
        with torch.no_grad():
            values = log_prob(proposed)
        better = values >= reached
        rows, reached = torch.where(better.unsqueeze(1), proposed, rows), torch.where(better, values, reached)
        rates = torch.where(better, rates * 2, rates / 4)
        trace.append(float(reached.max()))
    weights = rows[reached.argmax()]
    return {"weights": rounded(weights), "log_probs": rounded(torch.tensor(trace))}
