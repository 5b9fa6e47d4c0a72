"""The loss of a batch, and the negative log-likelihood of its real target tokens."""

from __future__ import annotations

from torch import Tensor

from attnlab.batch import Batch
from attnlab.model.outputs.likelihood import SummedLoss
from attnlab.model.outputs.output import Output
from attnlab.model.seq2seq import Unrolled


def summed_loss(
    output: Output, unrolled: Unrolled, batch: Batch, label_smoothing: float
) -> SummedLoss:
    """The cross-entropy against smoothed labels, and the cross-entropy against the labels.

    Label smoothing is that of Szegedy et al. 2016, section 7. Of a label's probability, the part
    ε = `label_smoothing` is spread evenly over all V entries of the vocabulary, the label itself
    included: q'(v) = (1 - ε) δ(v, label) + ε / V. Pads are removed before the output, the widest
    layer of the model.
    """
    places = real_places(batch)  # (N,)
    reading = unrolled.reading.with_each(lambda x: x.flatten(0, 1).index_select(0, places))
    labels = batch.target_output.flatten().index_select(0, places)  # (N,)
    return output.summed_loss(reading, labels, label_smoothing)


def real_places(batch: Batch) -> Tensor:
    """(N,), where the real target tokens stand in the flattened (B, T).

    Asking a GPU how many there are would wait for it; the batch knows their number.
    """
    real_first = (~batch.target_mask).flatten().byte().argsort(stable=True)
    return real_first[: batch.num_target_tokens]


def summed_nll(output: Output, unrolled: Unrolled, batch: Batch) -> Tensor:
    """The negative log-likelihood in nats, summed over the real target tokens, `<eos>` included."""
    return summed_loss(output, unrolled, batch, label_smoothing=0.0).loss
