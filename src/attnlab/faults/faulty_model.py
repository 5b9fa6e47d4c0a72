"""A translation model with a fault in it."""

from __future__ import annotations

from typing import Literal

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.faults.fault import Fault
from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.mechanism import LinearProjection
from attnlab.model.attention.score import Score
from attnlab.model.bridges import Bridge
from attnlab.model.decoders.decoder import Decoder
from attnlab.model.dropout import Rate
from attnlab.model.encoders.encoder import Encoder
from attnlab.model.fast.seq2seq import FastSeq2Seq
from attnlab.model.gates import ContextGate
from attnlab.model.histories.history import History
from attnlab.model.initialisation import Initialisation
from attnlab.model.input_feeding import InputFeeding
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.outputs.output import Output
from attnlab.model.readouts import Readout
from attnlab.model.scopes import Scope
from attnlab.model.seq2seq import Seq2Seq


class FaultySeq2Seq(FastSeq2Seq):
    """A right model, into which a fault is put once it is built.

    All other settings are those of `Seq2Seq`. A model folder names this class and the fault, so
    that whoever loads the model has the fault, too. Gradients are collected as in the sped-up
    model: where a fault leaves the model alone, its training has the bits of the right one.

    Args:
        fault: the mistake.
        tied_embeddings: `target` uses the target embedding as the output layer's weights too (Press
            and Wolf 2017); `all` also as the source embedding, over one joint vocabulary.
        initialisation: how the weights are drawn; None leaves them as torch draws them.
        attention_dropout: of single attention weights, in training.
    """

    def __init__(
        self,
        fault: Fault,
        encoder: Part[Encoder],
        bridge: Part[Bridge],
        attention: Part[Score] | None,
        projection: Part[LinearProjection] | None,
        normaliser: Part[Normaliser],
        scope: Part[Scope],
        history: Part[History] | None,
        heads: Part[MultiHeadAttention] | None,
        decoder: Part[Decoder],
        readout: Part[Readout],
        output: Part[Output],
        input_feeding: Part[InputFeeding] | None,
        tied_embeddings: Literal["none", "target", "all"],
        initialisation: Initialisation | None = None,
        gate: Part[ContextGate] | None = None,
        attention_dropout: Rate = 0.0,
        *,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        padding: Padding,
    ) -> None:
        super().__init__(
            encoder=encoder,
            bridge=bridge,
            attention=attention,
            projection=projection,
            normaliser=normaliser,
            scope=scope,
            history=history,
            heads=heads,
            decoder=decoder,
            readout=readout,
            output=output,
            input_feeding=input_feeding,
            tied_embeddings=tied_embeddings,
            initialisation=initialisation,
            gate=gate,
            attention_dropout=attention_dropout,
            source_vocabulary_size=source_vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            padding=padding,
        )
        self.fault = fault
        fault.check(self)
        fault.change_model(self)


def heads_of(model: Seq2Seq) -> list[Attention]:
    """Every head of every attention to the source; empty for a model without attention."""
    return [part for part in model.decoder.modules() if isinstance(part, Attention)]


def score_of(head: Attention) -> Score:
    """The score of a head, behind a projection of query and keys where there is one."""
    return head.score.score if isinstance(head.score, LinearProjection) else head.score
