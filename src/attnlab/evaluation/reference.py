"""What models make of a batch when they read its target as reference."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from attnlab.batch import Batch
from attnlab.model.seq2seq import Seq2Seq, Unrolled
from attnlab.search.ensemble import mean_attention


def read_reference(models: Sequence[Seq2Seq], batch: Batch) -> tuple[float, Tensor | None]:
    """The negative log-likelihood in nats, summed over the real target tokens, and the attention weights (B, T, S).

    Of several models, M of them, the likelihood of a token is the mean of theirs, and the weights are the mean over
    those that attend (None where none does), as an ensemble has them.
    """
    unrolled = [model(batch) for model in models]
    log_probs = torch.stack(
        [_log_probs(model.output, each, batch) for model, each in zip(models, unrolled, strict=True)]
    )  # (M, N), N real target tokens
    nll = -(log_probs.logsumexp(0) - math.log(len(models))).sum()
    return nll.item(), mean_attention([each.attention_weights for each in unrolled])


def _log_probs(output: nn.Module, unrolled: Unrolled, batch: Batch) -> Tensor:
    """The log-probability of each real target token: (N,)."""
    logits = output(unrolled.readout[batch.target_mask]).float()
    return -nll_loss(logits.log_softmax(-1), batch.target_output[batch.target_mask], reduction="none")
