"""Averages of attention (entropy, coverage, diagonality, mass on pads), and distances of weights.

Axes: B batch, S source, T target. A row is the attention weights of one target token over the
source; of several heads, their mean.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torchmetrics import Metric

NAMES = ("attention_entropy", "attention_coverage", "attention_diagonality", "attention_pad_mass")


class AttentionStatistics(Metric):
    """Means over all tokens so far, over batches and processes.

    Only real tokens count, `<eos>` among them. A row that does not sum to 1 (local-p attention
    without renormalising) is first divided by its sum, so that all metrics describe the direction
    of the attention, not its amount. Negative weights count by their absolute values, which say how
    much a token decides, in either direction. With a_ts such a share of target token t on
    source token s:

    attention_entropy: -sum_s a_ts log a_ts, in nats, mean over target tokens: 0 where a row lies on
        one token, log(S) where it is uniform. Attention on pads counts.
    attention_coverage: min(1, sum_t a_ts), the term of the coverage penalty of Wu et al. 2016
        (equation 14) without its logarithm, mean over source tokens: the share of the source that
        was attended to as much as one target token attends. It cannot exceed T/S.
    attention_diagonality: 1 - sum_s a_ts |t' - s'| / max_s |t' - s'| with the relative positions
        t' = t/(T-1) and s' = s/(S-1), counted from 0 over real tokens; mean over target tokens.
        This is the centrality of a row in Zhang et al. 2021 ("On the usefulness of self-attention
        for automatic speech recognition with transformers"), where T = S. Weight on pads is removed
        first. 1 is the diagonal; in long sentences a uniform attention has 5/4 - log 2 = 0.557 and
        the anti-diagonal 2 log 2 - 1 = 0.386. Sentences where T or S is 1 have no diagonal and do
        not count.
    attention_pad_mass: sum of a_ts over pads of the source, mean over target tokens.
    """

    full_state_update = False
    sums: Tensor
    tokens: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("sums", torch.zeros(len(NAMES)), dist_reduce_fx="sum")
        self.add_state("tokens", torch.zeros(len(NAMES)), dist_reduce_fx="sum")

    def update(self, weights: Tensor | None, source_mask: Tensor, target_mask: Tensor) -> None:
        """Add a batch: weights (B, T, S), source_mask (B, S), target_mask (B, T).

        weights: None where nothing attends.
        """
        if weights is None:
            return
        # Rows of pads may hold anything, NaN too: they are replaced, for NaN times zero is NaN.
        # In float32, because bfloat16 would round the logarithms.
        rows = weights.detach().float().abs().masked_fill(~target_mask.unsqueeze(2), 0)
        shares = _normalise(rows)  # (B, T, S)
        on_real = shares.masked_fill(~source_mask.unsqueeze(1), 0)  # (B, T, S)
        on_pads = shares.masked_fill(source_mask.unsqueeze(1), 0)  # (B, T, S)

        entropy = torch.special.entr(shares)  # (B, T, S)
        coverage = on_real.sum(1).clamp(max=1)  # (B, S)
        centrality, has_centrality = _centrality(_normalise(on_real), source_mask, target_mask)

        # In the order of NAMES.
        summands = (entropy, coverage, centrality[has_centrality], on_pads)
        counted = (target_mask, source_mask, has_centrality, target_mask)
        self.sums = self.sums + torch.stack([each.sum() for each in summands])
        self.tokens = self.tokens + torch.stack([each.sum() for each in counted])

    def compute(self) -> dict[str, float | None]:
        """The means; None where there was no attention."""
        means: dict[str, float | None] = {}
        for name, total, tokens in zip(
            NAMES, self.sums.tolist(), self.tokens.tolist(), strict=True
        ):
            means[name] = total / tokens if tokens > 0 else None
        return means


def _normalise(rows: Tensor) -> Tensor:
    """Rows divided by their sums; a row of zeros stays one."""
    return rows / rows.sum(-1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny)


def _centrality(shares: Tensor, source_mask: Tensor, target_mask: Tensor) -> tuple[Tensor, Tensor]:
    """How near each row (B, T) is to the diagonal, and for which rows (B, T) that is defined."""
    source = _relative_positions(source_mask)  # (B, S)
    target = _relative_positions(target_mask)  # (B, T)
    distance = (target.unsqueeze(2) - source.unsqueeze(1)).abs()  # (B, T, S)
    furthest = torch.maximum(target, 1 - target)  # the source's ends lie at 0 and 1
    centrality = 1 - (shares * distance).sum(-1) / furthest

    has_diagonal = (source_mask.sum(1) > 1) & (target_mask.sum(1) > 1)  # (B,)
    has_weight = shares.sum(-1) > 0  # (B, T)
    return centrality, target_mask & has_diagonal.unsqueeze(1) & has_weight


def _relative_positions(mask: Tensor) -> Tensor:
    """0 at the first real token and 1 at the last."""
    position = mask.cumsum(1) - 1
    last = mask.sum(1, keepdim=True) - 1
    return position / last.clamp_min(1)


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """Half the sum of the differences, over the last axis: 0..1."""
    return (p - q).abs().sum(-1) / 2


def jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    """The Jensen-Shannon divergence in nats, over the last axis: 0..ln 2."""
    both = torch.stack(torch.broadcast_tensors(p, q))
    mean = both.mean(0)
    divergences = (both * (_finite_log(both) - _finite_log(mean))).sum(-1)
    return divergences.mean(0)


def _finite_log(x: Tensor) -> Tensor:
    """The logarithm, without an infinity at 0, which times 0 would be NaN."""
    return x.clamp_min(torch.finfo(x.dtype).tiny).log()
