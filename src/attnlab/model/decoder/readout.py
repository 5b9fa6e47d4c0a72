"""The layer between a decoder's features and the output layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Readout(nn.Module):
    """tanh(W features + b), with dropout.

    Over [c_t; s_t] it is the attentional hidden state of Luong et al. 2015, equation 5.
    """

    def __init__(self, feature_size: int, readout_size: int, dropout: float) -> None:
        super().__init__()
        self.projection = nn.Linear(feature_size, readout_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.projection(features)))
