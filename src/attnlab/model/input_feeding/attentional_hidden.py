"""Luong's input feeding."""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.model.input_feeding.input_feeding import InputFeeding
from attnlab.model.readout.attentional import AttentionalReadout
from attnlab.model.readout.readout import Readout


class AttentionalHiddenFeeding(InputFeeding):
    """x_t = [e(y_{t-1}); attentional_hidden_{t-1}] (Luong et al. 2015, section 3.3)."""

    def __init__(self, *, readout: Readout, embedding_size: int) -> None:
        super().__init__()
        if not isinstance(readout, AttentionalReadout):
            raise ValueError(
                "feeding the attentional hidden state needs a readout that makes one; choose model/readout=attentional "
                "or model/input_feeding=none"
            )
        self.size = readout.size

    def forward(self, readout: Tensor, output: nn.Module, embedding: nn.Embedding) -> Tensor:
        return readout
