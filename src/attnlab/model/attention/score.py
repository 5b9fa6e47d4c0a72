"""Score: the base class of all attention scores, and what several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear


class Score(nn.Module, ABC):
    """How well each query goes with each key, before the softmax.

    longest_source: the name of its setting that limits the tokens of a source, `<eos>` included;
        None where any source can be read.
    projected_key_size: width A of the projected keys, which some histories need; None where a score
        does not say.
    by_position: True where the query is compared with positions; `project_keys` is then given
        positions (B, S).
    makes_weights: True where the scores are weights already, of any sign, so that a normaliser that
        makes distributions of them would lose what they say.
    is_logarithm: True where the scores are logarithms of what is to be weighed, which only the
        exponential of a normaliser undoes.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("query_size", "key_size")

    longest_source: ClassVar[str | None] = None
    projected_key_size: int | None = None
    by_position = False
    makes_weights = False
    is_logarithm = False

    def __init__(self) -> None:
        super().__init__()

    def project_keys(self, keys: Tensor) -> Tensor:
        """What depends on the keys alone, computed once a batch.

        keys (B, S, D) -> projected keys (B, S, A).
        """
        return keys

    def project_source(self, keys: Tensor, mask: Tensor | None) -> Tensor:
        """As `project_keys`, for a score whose keys depend on the tokens beside them.

        By default each key is projected by itself.

        mask: (B, S), False at pads, which must change no other key; None where pads count as
            tokens, or where there are none.
        """
        return self.project_keys(keys)

    def finish_keys(self, keys: Tensor) -> Tensor:
        """What `forward` reads of projected keys (B, S, A), the keys themselves by default.

        Computed once a batch, or at every step where a history changes the projected keys.
        """
        return keys

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """query (B, T, H) and finished keys (B, S, ...) -> scores (B, T, S)."""


def refuse_former_names(score: Score) -> None:
    """Raise ValueError where a score sets an attribute by the name that it once had."""
    if hasattr(score, "keys_size"):
        raise ValueError(
            f"{type(score).__name__} sets keys_size, which is called projected_key_size now; "
            "rename it in the class"
        )


def check_equal_widths(name: str, query_size: int, key_size: int) -> None:
    """Raise ValueError where a score would have to compare vectors of different widths.

    name: of the score, which has no weights that could change a width.
    """
    if query_size != key_size:
        raise ValueError(
            f"the {name} score needs a query and keys of one width, but the query has {query_size} "
            f"and the encoder's output {key_size}; make them equal, or choose "
            "model/projection=linear or model/attention=general (of attnlab.Attention: "
            "projection=<size>, or the score general)"
        )


def unit(vectors: Tensor) -> Tensor:
    """Each vector divided by its length; zero vectors stay, with a finite gradient."""
    lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / lengths.masked_fill(lengths == 0, 1)


def additive(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """v · tanh(q + k) of every query with every key.

    query (B, T, A), keys (B, S, A), v (A,) -> (B, T, S).

    By tanh(x) = 2 sigmoid(2x) - 1: on a CPU the sigmoid is several times cheaper, and takes the
    sum's own place. The constant goes into the product's own sum: in half precision a score rounded
    before it is taken off loses digits.
    """
    x = torch.add(2 * query.unsqueeze(2), keys.unsqueeze(1), alpha=2)  # (B, T, S, A)
    return linear(x.sigmoid_(), (2 * v).unsqueeze(0), -v.sum().unsqueeze(0)).squeeze(-1)
