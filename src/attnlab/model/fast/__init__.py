"""The same models faster: subclasses of their layers, and products of a processor's own library.

Nothing else in model/ imports this room. Each class here overrides one method of a plain layer and
gives the same numbers, but for the order in which sums are added up. `speed_up` switches a built
model over, so parameters, their names and the random numbers that drew them stay as they are.
"""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from attnlab.model.attention.attention import Attention
from attnlab.model.decoders.body import DecoderBody
from attnlab.model.decoders.cells import GRUCell, LSTMCell, RNNCell
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.fast.attention import FastAttention
from attnlab.model.fast.cells import FastGRUCell, FastLSTMCell, FastRNNCell
from attnlab.model.fast.decoder import FastDecoderBody
from attnlab.model.fast.encoder import FastEncoder
from attnlab.model.fast.linear import FastLinear
from attnlab.model.fast.output import FastLinearOutput
from attnlab.model.fast.seq2seq import FastSeq2Seq
from attnlab.model.outputs.linear import LinearOutput
from attnlab.model.seq2seq import Seq2Seq

ModelT = TypeVar("ModelT", bound=nn.Module)

FASTER: dict[type[nn.Module], type[nn.Module]] = {
    Attention: FastAttention,
    DecoderBody: FastDecoderBody,
    RecurrentEncoder: FastEncoder,
    GRUCell: FastGRUCell,
    LSTMCell: FastLSTMCell,
    RNNCell: FastRNNCell,
    Seq2Seq: FastSeq2Seq,
    nn.Linear: FastLinear,
    LinearOutput: FastLinearOutput,
}


def speed_up(model: ModelT) -> ModelT:
    """Switch the layers of a model to their faster subclasses, in place, and return the model.

    A layer of any other class, such as one's own subclass, stays as it is.
    """
    for layer in model.modules():
        if type(layer) in FASTER:
            layer.__class__ = FASTER[type(layer)]
    return model
