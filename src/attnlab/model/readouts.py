"""Readouts, from a decoder's step to what the output layer reads; and tied embeddings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn.functional import linear

from attnlab.model.dropout import Dropout, Rate


class Readout(nn.Module, ABC):
    """Joins what a step knows.

    It stands outside the step, so that training can apply it to all steps at once. A subclass sets
    `size` in its constructor and defines `forward`. Its constructor takes its settings, and
    whichever of the run-time arguments it needs: `hidden_size` H, `context_size` D (0 where the
    context does not go into the readout) and `embedding_size` E.

    size: width R of its output.
    makes_attentional_hidden: True where the output is an attentional hidden state, made of context
        and state, as model/input_feeding=attentional_hidden feeds it to the next step.
    dropout: on its output.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("hidden_size", "context_size", "embedding_size")

    size: int

    makes_attentional_hidden: bool = False

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        """Return what the output layer reads, (..., R).

        The leading axes are (B,) for one step, or (B, T) for all steps at once.

        Args:
            hidden: s_t (..., H).
            context: c_t (..., D), None where the context does not go into the readout.
            token: e(y_{t-1}) (..., E), the embedded last token.
        """

    def project_context(self, context: Tensor) -> Tensor:
        """What `at_each` reads of contexts (..., D), computed once for many states: (..., P)."""
        return context

    def at_each(self, hidden: Tensor, projected: Tensor, token: Tensor) -> Tensor:
        """`forward` of one state with each of S contexts: (..., S, R).

        A subclass whose first layer is linear overrides both methods, to multiply each context and
        each state once and not every pair of them.

        Args:
            hidden: (..., H).
            projected: (..., S, P), of the contexts.
            token: (..., E).
        """
        shape = projected.shape[:-1]
        hidden = hidden.unsqueeze(-2).expand(*shape, -1)
        token = token.unsqueeze(-2).expand(*shape, -1)
        return self(hidden, projected, token)


class StateReadout(Readout):
    """s_t as it is (Sutskever et al. 2014, section 2).

    The output layer knows context and token by the state alone.
    """

    def __init__(
        self, dropout: Rate, *, hidden_size: int, context_size: int, embedding_size: int
    ) -> None:
        super().__init__()
        if context_size > 0:
            raise ValueError(
                "the state readout reads no context, but this decoder hands it one; choose a "
                "model.decoder.context that goes elsewhere, or model/readout=tanh"
            )
        self.size = hidden_size
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        return self.dropout(hidden)


class PlainReadout(Readout):
    """[s_t; c_t; e(y_{t-1})], joined; without c_t where no context goes into the readout."""

    def __init__(
        self, dropout: Rate, *, hidden_size: int, context_size: int, embedding_size: int
    ) -> None:
        super().__init__()
        self.size = hidden_size + context_size + embedding_size
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        known = [hidden, token] if context is None else [hidden, context, token]
        return self.dropout(torch.cat(known, dim=-1))


class TanhReadout(Readout):
    """tanh(W [s_t; c_t; e(y_{t-1})] + b): what Bahdanau's g reads (2015, equation 4).

    There is no c_t where no context goes into the readout.
    """

    def __init__(
        self,
        size: PositiveInt,
        dropout: Rate,
        *,
        hidden_size: int,
        context_size: int,
        embedding_size: int,
    ) -> None:
        super().__init__()
        self.size = size
        self.widths = [hidden_size, context_size, embedding_size]
        self.projection = nn.Linear(sum(self.widths), size)
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        known = [hidden, token] if context is None else [hidden, context, token]
        return self.dropout(torch.tanh(self.projection(torch.cat(known, dim=-1))))

    def project_context(self, context: Tensor) -> Tensor:
        _, of_context, _ = self.projection.weight.split(self.widths, dim=1)
        return linear(context, of_context)

    def at_each(self, hidden: Tensor, projected: Tensor, token: Tensor) -> Tensor:
        of_hidden, _, of_token = self.projection.weight.split(self.widths, dim=1)
        of_state = linear(hidden, of_hidden, self.projection.bias) + linear(token, of_token)
        return self.dropout(torch.tanh(projected + of_state.unsqueeze(-2)))


class AttentionalReadout(Readout):
    """attentional_hidden_t = tanh(W_c [c_t; s_t] + b).

    Luong et al. 2015, equation 5, there without b.
    """

    makes_attentional_hidden = True

    def __init__(
        self,
        size: PositiveInt,
        dropout: Rate,
        *,
        hidden_size: int,
        context_size: int,
        embedding_size: int,
    ) -> None:
        super().__init__()
        if context_size == 0:
            raise ValueError(
                "the attentional hidden state is made of a context and a state, but this decoder "
                "hands its readout no context; choose a model.decoder.context that goes into the "
                "readout, or model/readout=tanh"
            )
        self.size = size
        self.widths = [context_size, hidden_size]
        self.projection = nn.Linear(context_size + hidden_size, size)
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        assert context is not None
        return self.dropout(torch.tanh(self.projection(torch.cat([context, hidden], dim=-1))))

    def project_context(self, context: Tensor) -> Tensor:
        of_context, _ = self.projection.weight.split(self.widths, dim=1)
        return linear(context, of_context)

    def at_each(self, hidden: Tensor, projected: Tensor, token: Tensor) -> Tensor:
        _, of_hidden = self.projection.weight.split(self.widths, dim=1)
        of_state = linear(hidden, of_hidden, self.projection.bias)
        return self.dropout(torch.tanh(projected + of_state.unsqueeze(-2)))


class MaxoutReadout(Readout):
    """t = maxout(U s_t + V e(y_{t-1}) + C c_t + b), each unit the larger of two sums.

    Maxout is that of Goodfellow et al. 2013; it is the deep output of Bahdanau et al. 2015,
    appendix A.2.2. The appendix prints s_{t-1}; s_t is what equation 4 of the same paper gives to
    g.
    """

    def __init__(
        self,
        size: PositiveInt,
        dropout: Rate,
        *,
        hidden_size: int,
        context_size: int,
        embedding_size: int,
    ) -> None:
        super().__init__()
        self.size = size
        self.U = nn.Linear(hidden_size, 2 * size)
        self.V = nn.Linear(embedding_size, 2 * size, bias=False)
        self.C = nn.Linear(context_size, 2 * size, bias=False) if context_size else None
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        sums = self.U(hidden) + self.V(token)
        if self.C is not None:
            sums = sums + self.C(context)
        return self.dropout(sums.unflatten(-1, (self.size, 2)).amax(-1))

    def project_context(self, context: Tensor) -> Tensor:
        assert self.C is not None
        return self.C(context)

    def at_each(self, hidden: Tensor, projected: Tensor, token: Tensor) -> Tensor:
        sums = projected + (self.U(hidden) + self.V(token)).unsqueeze(-2)
        return self.dropout(sums.unflatten(-1, (self.size, 2)).amax(-1))


def tie_embeddings(
    which: Literal["none", "target", "all"],
    output: nn.Linear | None,
    target: nn.Embedding,
    source: nn.Embedding | None,
) -> None:
    """Let the output layer (`target`), and the source's (`all`), use the target embedding's matrix.

    Args:
        output: None for an output without such a layer.
        source: None for an encoder without an embedding that may be tied.

    Raises ValueError where the widths or the vocabularies differ, or there is no output layer.
    """
    if which == "none":
        return
    if output is None:
        raise ValueError(
            f"tied_embeddings is {which}, but this output has no layer over the vocabulary that "
            "could use an embedding; choose tied_embeddings=none or model/output=linear"
        )
    if output.in_features != target.embedding_dim:
        raise ValueError(
            f"tied_embeddings is {which}, which needs a readout as wide as the target embedding, "
            f"but they have {output.in_features} and {target.embedding_dim}; make "
            "model.decoder.embedding_size the readout's width (with model/readout=tanh that is "
            "model.readout.size), or choose tied_embeddings=none"
        )
    if which == "all" and source is None:
        raise ValueError(
            "tied_embeddings is all, which needs an encoder that names its source embedding, but "
            "the `embedding` of this one is None; choose tied_embeddings=target"
        )
    if which == "all" and source is not None and source.weight.shape != target.weight.shape:
        raise ValueError(
            "tied_embeddings is all, which needs one vocabulary and one embedding width on both "
            f"sides, but the source has {source.num_embeddings} tokens of width "
            f"{source.embedding_dim} and the target {target.num_embeddings} of "
            f"{target.embedding_dim}; choose data.tokenizer.joint=true and equal widths, or "
            "tied_embeddings=target"
        )
    # As an output layer, vectors of length sqrt(E) would make logits far too large.
    nn.init.normal_(target.weight, std=target.embedding_dim**-0.5)
    if target.padding_idx is not None:
        nn.init.zeros_(target.weight.data[target.padding_idx])
    output.weight = target.weight
    if which == "all" and source is not None:
        source.weight = target.weight
