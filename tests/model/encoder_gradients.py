"""The gradients of an encoder, against finite differences."""

from __future__ import annotations

import torch

from attnlab.batch import Batch
from attnlab.model.encoders.encoder import Encoder


def assert_gradients_are_right(encoder: Encoder, batch: Batch) -> None:
    """Check the gradient of every weight, of a number that all outputs and the final state make."""
    names, weights = zip(*encoder.named_parameters(), strict=True)

    def run(*values: torch.Tensor) -> torch.Tensor:
        given = dict(zip(names, values, strict=True))
        inputs = (batch.source, batch.source_mask)
        encoded = torch.func.functional_call(encoder, given, inputs)
        return encoded.outputs.sin().sum() + encoded.final.hidden.cos().sum()

    # torch holds the gradient of the vector of pads at zero, whatever the numbers say.
    embeddings = [each for each in encoder.modules() if isinstance(each, torch.nn.Embedding)]
    assert embeddings
    for embedding in embeddings:
        embedding.padding_idx = None
    assert torch.autograd.gradcheck(run, weights, fast_mode=True)
