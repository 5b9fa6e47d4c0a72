"""Attention weights of hypotheses whose model knows afterwards what each token came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnlab.batch import EOS, Batch, Padding
from attnlab.data.padding import make_batch
from attnlab.model.attention.intervention import Intervention
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.ensemble import Ensemble, mean_attention
from attnlab.search.search import Hypothesis


@torch.no_grad()
def with_posteriors(
    model: Seq2Seq | Ensemble,
    source: Tensor,
    source_mask: Tensor,
    found: list[list[Hypothesis]],
    intervention: Intervention | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of a search, with the posterior of their alignments as attention weights.

    While a search writes a token, it does not know the token yet, and none that follows. So the
    model reads what was written once more. Hypotheses stay as they are where none was asked for
    attention weights, or the output has no posterior.

    Args:
        source, source_mask: (B, S), what the search was given.
        found: of each source its hypotheses.
        intervention: under which the model wrote them.
    """
    members = list(model.members) if isinstance(model, Ensemble) else [model]
    has_weights = any(each.attention_weights is not None for several in found for each in several)
    if not has_weights or not any(member.output.has_posterior for member in members):
        return found

    aligned: list[list[Hypothesis]] = [[] for _ in found]
    # As many at a time as the search wrote: first the best hypothesis of each source.
    for rank in range(max(map(len, found))):
        rows = [row for row, several in enumerate(found) if rank < len(several)]
        hypotheses = [found[row][rank] for row in rows]
        batch = _read_again(source[rows], source_mask[rows], hypotheses, model.padding)
        unrolled = [member(batch, intervention=intervention) for member in members]
        weights = mean_attention([each.attention_weights for each in unrolled])
        assert weights is not None
        for i, row in enumerate(rows):
            its_weights = weights[i][batch.target_mask[i]].float()
            aligned[row].append(replace(hypotheses[i], attention_weights=its_weights))
    return aligned


def _read_again(
    source: Tensor, source_mask: Tensor, hypotheses: Sequence[Hypothesis], padding: Padding
) -> Batch:
    """A batch with a hypothesis of each source as its target."""
    targets = [hypothesis.tokens for hypothesis in hypotheses]
    batch = make_batch([[] for _ in targets], targets, padding).to(source.device)
    # A hypothesis that was cut off never wrote the <eos> that a batch puts behind it.
    finished = [hypothesis.finished for hypothesis in hypotheses]
    has_eos = torch.tensor(finished, device=source.device).unsqueeze(1)
    is_written = has_eos | (batch.target_output != EOS)
    return replace(
        batch,
        source=source,
        source_mask=source_mask,
        target_mask=batch.target_mask & is_written,
    )
