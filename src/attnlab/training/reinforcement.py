"""What training learns from attention weights that were drawn: REINFORCE with a moving average.

Axes: B batch, T target length; a classifier looks once, so that its T is 1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.config.part import Part
from attnlab.model.attention.draws import Drawn
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.training.attention_losses.attention_loss import AttentionLoss

DRAW_ENTROPY = "draw_entropy"


class Reinforcement(nn.Module):
    """A term of the loss whose gradient is REINFORCE's estimate (Williams 1992).

    Of Xu et al. 2015, section 4.1, equation 12, with R the log-likelihood of a target:

        - reward_weight sum_t (R_t - b n_t) log p(drawn_t) - entropy_weight sum_t H_t

    R_t counts the target tokens from step t on, n_t of them, since no draw changes what was written
    before it: that has the expectation of R, and varies less. In the paper b is a moving average of
    the R of whole captions. Sentences differ more in length, so that here b is that of one token.
    The mean of earlier steps alone is in b, so that it adds no bias; before the first step there is
    none, and its draws are not rewarded. The paper also attends softly to half of the images; that
    is left out.

    The term itself is - entropy_weight sum_t H_t: its other part has a gradient, and the value 0.

    Args:
        drawing: the normaliser that draws, whose settings it takes.
    """

    average: Tensor  # (), not yet divided by `weight`
    weight: Tensor  # (), the sum of the weights in it; 0 before the first step

    def __init__(self, drawing: Normaliser) -> None:
        super().__init__()
        settings: Any = drawing
        self.reward_weight: float = settings.reward_weight
        self.entropy_weight: float = settings.entropy_weight
        self.decay: float = settings.baseline_decay
        self.register_buffer("average", torch.zeros(()))
        self.register_buffer("weight", torch.zeros(()))
        # Of the parts of a batch so far; a training never stops between them.
        self._noted: list[Tensor] = []  # of each part its (2,), rewards and tokens

    @property
    def baseline(self) -> Tensor:
        """b, the mean log-likelihood of a token in earlier steps; 0 where there were none."""
        return self.average / self.weight.clamp(min=torch.finfo(self.weight.dtype).tiny)

    def forward(self, losses: Tensor, mask: Tensor, drawn: Drawn) -> Tensor:
        """The term of a batch, or of a part of it.

        Args:
            losses: (B, T), what training lowers, of each token: - log p without label smoothing.
            mask: (B, T), of the real tokens.
            drawn: at each step.
        """
        rewards = (-losses.detach()).masked_fill(~mask, 0)
        advantage = _from_here_on(rewards) - self.baseline * _from_here_on(mask.to(rewards.dtype))
        advantage = torch.where(self.weight > 0, advantage, 0).masked_fill(~mask, 0)
        # Its value would say nothing, as its mean is that of the baseline's error.
        score = drawn.log_probability - drawn.log_probability.detach()
        learned = (advantage * score).sum()
        entropy = self.entropy_of(mask, drawn)

        self._noted.append(torch.stack([rewards.sum(), mask.sum().to(rewards.dtype)]))
        return -self.reward_weight * learned - self.entropy_weight * entropy

    def entropy_of(self, mask: Tensor, drawn: Drawn) -> Tensor:
        """The sum of the entropies of all real target tokens."""
        return drawn.entropy.masked_fill(~mask, 0).sum()

    def end_step(self) -> None:
        """Let the moving average learn from a whole batch, that of all processes."""
        if not self._noted:
            return  # while the attention is off
        sums = torch.stack(self._noted).sum(0)
        self._noted.clear()
        if torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        rewards, tokens = sums.to(self.average)
        self.average.lerp_(rewards / tokens, 1 - self.decay)
        self.weight.lerp_(torch.ones_like(self.weight), 1 - self.decay)


def _from_here_on(x: Tensor) -> Tensor:
    """(B, T) -> (B, T), the sums over each step and those after it."""
    return x.flip(1).cumsum(1).flip(1)


def draw_problems(loss: AttentionLoss | None, normaliser: Part[Normaliser] | None) -> list[str]:
    """A sentence where a loss on attention weights could teach nothing, as they are drawn."""
    if loss is None or normaliser is None or not normaliser.target.is_drawn:
        return []
    other = "gumbel" if loss.teaches_hard(is_noisy=True) else "softmax"
    return [
        f"training.attention_loss is {type(loss).__name__}, but weights that normaliser "
        f"{normaliser.target.__name__} draws have no gradient; choose "
        f"training/attention_loss=none, or another model/normaliser such as {other}"
    ]
