"""The negative log-likelihood of real target tokens."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnlab.batch import Batch
from attnlab.model.seq2seq import Unrolled


def summed_nll(output: nn.Module, unrolled: Unrolled, batch: Batch) -> Tensor:
    """The negative log-likelihood in nats, summed over the real target tokens, `<eos>` included.

    Pads are left out before the output layer, the widest of the model, sees them.
    """
    logits = output(unrolled.readout[batch.target_mask])  # (N, V), N real tokens
    return cross_entropy(logits.float(), batch.target_output[batch.target_mask], reduction="sum")
