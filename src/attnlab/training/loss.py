"""The loss of a batch, and the negative log-likelihood of its real target tokens."""

from __future__ import annotations

from torch import Tensor

from attnlab.batch import Batch
from attnlab.model.outputs.likelihood import (
    EachLoss,
    SummedLoss,
    at_least_single,
    each_smoothed_nll,
)
from attnlab.model.outputs.output import Output, Reading
from attnlab.model.unrolled import Unrolled


def summed_loss(
    output: Output, unrolled: Unrolled, batch: Batch, label_smoothing: float
) -> SummedLoss:
    """The cross-entropy against smoothed labels, and the cross-entropy against the labels.

    Label smoothing is that of Szegedy et al. 2016, section 7. Of a label's probability, the part
    ε = `label_smoothing` is spread evenly over all V entries of the vocabulary, the label itself
    included: q'(v) = (1 - ε) δ(v, label) + ε / V. Pads are removed before the output, the widest
    layer of the model.
    """
    reading, labels = _of_real_tokens(unrolled, batch, real_places(batch))
    return output.summed_loss(reading, labels, label_smoothing)


def token_losses(
    output: Output, unrolled: Unrolled, batch: Batch, label_smoothing: float
) -> EachLoss:
    """The summands of `summed_loss`, each (B, T); 0 at pads.

    Where their sum is enough, `summed_loss` takes less time.
    """
    places = real_places(batch)
    reading, labels = _of_real_tokens(unrolled, batch, places)
    log_probabilities = at_least_single(output(reading)).log_softmax(-1)
    found = each_smoothed_nll(log_probabilities, labels, label_smoothing)
    size = batch.target_mask.numel()
    in_place = (x.new_zeros(size).index_copy(0, places, x) for x in found)
    return EachLoss(*(x.view(batch.target_mask.shape) for x in in_place))


def _of_real_tokens(unrolled: Unrolled, batch: Batch, places: Tensor) -> tuple[Reading, Tensor]:
    """The reading and the labels (N,) at N places of the flattened (B, T)."""
    reading = unrolled.reading.with_each(lambda x: x.flatten(0, 1).index_select(0, places))
    return reading, batch.target_output.flatten().index_select(0, places)


def real_places(batch: Batch) -> Tensor:
    """(N,), where the real target tokens stand in the flattened (B, T).

    Asking a GPU how many there are would wait for it; the batch knows their number.
    """
    real_first = (~batch.target_mask).flatten().byte().argsort(stable=True)
    return real_first[: batch.num_target_tokens]


def summed_nll(output: Output, unrolled: Unrolled, batch: Batch) -> Tensor:
    """The negative log-likelihood in nats, summed over the real target tokens, `<eos>` included."""
    return summed_loss(output, unrolled, batch, label_smoothing=0.0).loss
