"""The attention classifier: encode, attend once, decide.

Axes: B batch, S source length, D encoder output, N heads, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.model.attention.attention import MultiHeadAttention, remember
from attnlab.model.attention.draws import Drawn, Draws
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.mechanism import LinearProjection, Mechanism
from attnlab.model.attention.memory import Memory
from attnlab.model.attention.score import Score
from attnlab.model.dropout import Dropout, Rate
from attnlab.model.encoders.encoder import Encoder
from attnlab.model.gates import ContextGate
from attnlab.model.initialisation import Initialisation
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.scopes import Scope


@dataclass(frozen=True)
class Classified:
    """log_probabilities of the classes, and where the attention looked, the mean over its heads.

    drawn: what training drew, with T = 1; None where it draws nothing.
    """

    log_probabilities: Tensor  # (B, C)
    attention_weights: Tensor  # (B, S)
    drawn: Drawn | None = None


class Classifier(nn.Module):
    """One look back at the whole sentence, with its own summary or a learnt vector as the query.

    With h_1, ..., h_S the encoder's outputs and q the top layer's final state,

        a = normalise(score(q, h)),  c = sum_s a_s h_s,  d = relu(W_d c + b_d),  z = W_o d + b_o

    and dropout on d. For two classes z is one number and P(class 1) = sigmoid(z); for more of them
    there are C numbers and P = softmax(z). The score is additive by default, v · tanh(W q + U h)
    (Bahdanau et al. 2015, appendix A.1.2). Pooling by attention before a dense layer is that of
    Raffel and Ellis 2015 (equation 1). There, and in Jain and Wallace 2019, no sentence asks: what
    is looked for is learnt, one q for all sentences (`query=learned`), so that the additive score
    is v · tanh(U h + b) with b = W q, and `dot` is q · h. A gate on the context goes by q, too, and
    makes another c of c and q.

    Args:
        query: `sentence`, the encoder's final state, or `learned`, a vector as wide as an encoder
            output.
        dense_size: units of the layer d.
        dropout: on that layer.
        initialisation: how the weights are drawn; None leaves them as torch draws them.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = (
        "source_vocabulary_size",
        "num_classes",
        "padding",
    )

    def __init__(
        self,
        encoder: Part[Encoder],
        attention: Part[Score],
        projection: Part[LinearProjection] | None,
        normaliser: Part[Normaliser],
        scope: Part[Scope],
        heads: Part[MultiHeadAttention] | None,
        dense_size: PositiveInt,
        dropout: Rate,
        initialisation: Initialisation | None = None,
        gate: Part[ContextGate] | None = None,
        query: Literal["sentence", "learned"] = "sentence",
        *,
        source_vocabulary_size: int,
        num_classes: int,
        padding: Padding,
    ) -> None:
        super().__init__()
        if scope.target.follows_the_target:
            raise ValueError(
                f"scope {scope.target.__name__} follows the target word by word, and a classifier "
                "has none; choose model/scope=global or model/scope=local_p"
            )
        self.padding = padding
        self.encoder: Encoder = encoder(
            source_vocabulary_size=source_vocabulary_size, padding=padding
        )
        size = self.encoder.output_size
        mechanism = Mechanism(attention, normaliser, scope, projection, heads=heads, gate=gate)
        is_learned = query == "learned"
        query_size = size if is_learned else self.encoder.state_shape.size
        self.attention = mechanism.build(query_size=query_size, value_size=size)
        self.learned_query = nn.Parameter(_random_query(size)) if is_learned else None
        self.dense = nn.Linear(size, dense_size)
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(dense_size, 1 if num_classes == 2 else num_classes)
        if initialisation is not None:
            initialisation(self)

    def forward(
        self, source: Tensor, source_mask: Tensor, intervention: Intervention | None = None
    ) -> Classified:
        """source (B, S) and its mask -> what each sentence is."""
        # 1. Read the sentence.
        memory = self.read(source, source_mask, intervention)
        draws = Draws() if self.training and self.attention.drawing is not None else None
        memory = memory.recorded_by(draws)
        # 2. Look back at it once.
        # (B, 1, D), (B, N, 1, S)
        context, weights = self.attention(
            self.ask(memory), memory, source.new_zeros(len(source), 1)
        )
        # 3. Decide.
        log_probabilities = self.decide(context.squeeze(1))
        drawn = None if draws is None else draws.take()
        return Classified(log_probabilities, weights.mean(1).squeeze(1), drawn)

    def read(
        self, source: Tensor, source_mask: Tensor, intervention: Intervention | None = None
    ) -> Memory:
        """source (B, S) and its mask -> the sentences as the attention sees them."""
        encoded = self.encoder(source, source_mask)
        return remember(
            encoded, source_mask, self.padding.attention_masked, self.attention, intervention
        )

    def ask(self, memory: Memory) -> Tensor:
        """The query of each sentence: (B, 1, D)."""
        if self.learned_query is None:
            return memory.summary.unsqueeze(1)
        return self.learned_query.expand(len(memory.summary), 1, -1)

    def decide(self, context: Tensor) -> Tensor:
        """What the attention found, (..., D) -> log-probabilities of the classes, (..., C)."""
        return _log_probabilities(self.output(self.dropout(torch.relu(self.dense(context)))))


def _random_query(size: int) -> Tensor:
    """Drawn as torch draws the weights of a linear layer: between ±1 / √size."""
    bound = size**-0.5
    return torch.empty(size).uniform_(-bound, bound)


def _log_probabilities(logits: Tensor) -> Tensor:
    """Log-probabilities of classes, from logits (..., 1) of two or (..., C) of more.

    The sigmoid of the one logit of two classes is the probability of the second.
    """
    # Too rough for logarithms
    logits = logits.float() if logits.dtype is torch.bfloat16 else logits
    if logits.shape[-1] > 1:
        return log_softmax(logits, dim=-1)
    return torch.cat([logsigmoid(-logits), logsigmoid(logits)], dim=-1)
