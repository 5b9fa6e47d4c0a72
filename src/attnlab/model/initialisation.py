"""Initial weights: how a model's parameters are drawn before its training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from attnlab.model.attention.score import Score


class Initialisation(ABC):
    """Draws a model's parameters anew.

    A subclass defines `draw`. Learned scales (g of some scores, the gains of layer norms) should
    stay; embeddings of pads become zero after it.
    """

    def __call__(self, model: nn.Module) -> None:
        if next(model.parameters()).is_meta:
            return  # shapes alone
        with torch.no_grad():
            self.draw(model)
            for module in model.modules():
                if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                    module.weight[module.padding_idx].zero_()

    @abstractmethod
    def draw(self, model: nn.Module) -> None:
        """Overwrite the parameters; gradients are off."""


@dataclass(frozen=True)
class UniformInitialisation(Initialisation):
    """All from U(-r, r), biases too.

    Luong et al. 2015, section 4.1: 0.1; Sutskever et al. 2014, section 3.4: 0.08.

    radius: r.
    """

    radius: PositiveFloat

    def draw(self, model: nn.Module) -> None:
        for _, matrix in _matrices(model):
            matrix.uniform_(-self.radius, self.radius)


class GlorotInitialisation(Initialisation):
    """Matrices from U(-r, r) with r = sqrt(6 / (inputs + outputs)); biases are zero.

    Each gate's matrix by itself (Glorot and Bengio 2010, equation 16).
    """

    def draw(self, model: nn.Module) -> None:
        for name, matrix in _matrices(model):
            if "bias" in name:
                matrix.zero_()
            else:
                # V · x is one output
                nn.init.xavier_uniform_(matrix if matrix.ndim > 1 else matrix.unsqueeze(0))


@dataclass(frozen=True)
class BahdanauInitialisation(Initialisation):
    """Orthogonal recurrences and normal weights; v and all biases are zero.

    Recurrent matrices, each gate's by itself, are random orthogonal ones, W and U of the additive
    score come from N(0, attention_std²), others from N(0, std²) (Bahdanau et al. 2015, appendix
    B.1).

    std: of the other matrices, embeddings among them.
    attention_std: of W and U.
    """

    std: PositiveFloat
    attention_std: PositiveFloat

    def draw(self, model: nn.Module) -> None:
        scores = [
            each for each in model.modules() if isinstance(each, Score) and hasattr(each, "U")
        ]
        additive = {id(parameter) for score in scores for parameter in score.parameters()}
        for name, matrix in _matrices(model):
            if matrix.ndim == 1:
                matrix.zero_()
            elif "weight_hh" in name:
                nn.init.orthogonal_(matrix)
            else:
                matrix.normal_(0, self.attention_std if id(matrix) in additive else self.std)


def _matrices(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The matrices and vectors that a model learns, each once, those of each gate apart.

    Embeddings may be tied. Layer norms are left out: with other gains than 1 they do not normalise.
    """
    for name, parameter in model.named_parameters():
        layer = model.get_submodule(name.rpartition(".")[0])
        if isinstance(layer, nn.LayerNorm | nn.RMSNorm | nn.GroupNorm):
            continue
        if isinstance(layer, nn.RNNBase | nn.RNNCellBase):
            yield from ((name, gate) for gate in parameter.split(layer.hidden_size))
        elif parameter.ndim:
            yield name, parameter
