"""Initial weights: how a model's parameters are drawn before its training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor, nn

from attnlab.model.attention.bahdanau import BahdanauScore


class Initialisation(ABC):
    """Draws a model's parameters anew; learned scales (g of some scores) stay, and embeddings of pads are zero."""

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
class TorchInitialisation(Initialisation):
    """As torch draws them: uniform within the inverse square root of the inputs (in a recurrence: of the hidden units);
    embeddings from N(0, 1)."""

    def draw(self, model: nn.Module) -> None:
        pass


@dataclass(frozen=True)
class UniformInitialisation(Initialisation):
    """All from U(-r, r), biases too (Luong et al. 2015, section 4.1: 0.1; Sutskever et al. 2014, section 3.4: 0.08).

    radius: r.
    """

    radius: PositiveFloat

    def draw(self, model: nn.Module) -> None:
        for _, parameter in _arrays(model):
            parameter.uniform_(-self.radius, self.radius)


@dataclass(frozen=True)
class GlorotInitialisation(Initialisation):
    """Matrices, each gate's by itself, from U(-r, r) with r = sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010,
    equation 16); biases are zero.

    forget_bias: of the forget gates of LSTM cells (Jozefowicz et al. 2015 recommend 1).
    """

    forget_bias: float = 0.0

    def draw(self, model: nn.Module) -> None:
        for name, parameter in _arrays(model):
            if "bias" in name:
                parameter.zero_()
            elif parameter.ndim == 1:  # v of an additive score, a matrix with one row
                nn.init.xavier_uniform_(parameter.unsqueeze(0))
            else:
                for matrix in _gates(name, parameter, model):
                    nn.init.xavier_uniform_(matrix)
        for module in model.modules():
            if isinstance(module, nn.LSTM | nn.LSTMCell):
                for name, bias in module.named_parameters(recurse=False):
                    if name.startswith("bias_ih"):
                        bias.chunk(4)[1].fill_(self.forget_bias)


@dataclass(frozen=True)
class BahdanauInitialisation(Initialisation):
    """Recurrent matrices, each gate's by itself, are random orthogonal ones, W and U of the additive score come from
    N(0, attention_std²), others from N(0, std²); v and all biases are zero (Bahdanau et al. 2015, appendix B.1).

    std: of the other matrices, embeddings among them.
    attention_std: of W and U.
    """

    std: PositiveFloat = 0.01
    attention_std: NonNegativeFloat = 0.001

    def draw(self, model: nn.Module) -> None:
        for name, parameter in _arrays(model):
            if parameter.ndim == 1:
                parameter.zero_()
            elif "weight_hh" in name:
                for matrix in _gates(name, parameter, model):
                    nn.init.orthogonal_(matrix)
            else:
                parameter.normal_(0, self.std)
        for module in model.modules():
            if isinstance(module, BahdanauScore):
                for linear in (module.W, module.U):
                    linear.weight.normal_(0, self.attention_std)


def _arrays(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The parameters with at least one dimension, each once (embeddings may be tied), in their order."""
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.ndim)


def _gates(name: str, parameter: Tensor, model: nn.Module) -> tuple[Tensor, ...]:
    """The matrices that a recurrent layer stacks in one parameter; any other parameter as it is."""
    module = model.get_submodule(name.rpartition(".")[0])
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        return parameter.split(module.hidden_size)
    return (parameter,)
