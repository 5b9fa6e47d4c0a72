"""One matrix for embeddings and output layer."""

from __future__ import annotations

from typing import Literal

from torch import nn


def tie_embeddings(
    which: Literal["none", "target", "all"], output: nn.Linear, target: nn.Embedding, source: nn.Embedding
) -> None:
    """Let the output layer (`target`), and the source embedding too (`all`), use the target embedding's matrix.

    Raises ValueError where the widths or the vocabularies differ.
    """
    if which == "none":
        return
    if output.in_features != target.embedding_dim:
        raise ValueError(
            f"tied_embeddings is {which}, which needs a readout as wide as the target embedding, but they have "
            f"{output.in_features} and {target.embedding_dim}; make model.decoder.embedding_size the readout's width "
            f"(with model/readout=tanh that is model.readout.size), or choose tied_embeddings=none"
        )
    if which == "all" and source.weight.shape != target.weight.shape:
        raise ValueError(
            f"tied_embeddings is all, which needs one vocabulary and one embedding width on both sides, but the source "
            f"has {source.num_embeddings} tokens of width {source.embedding_dim} and the target "
            f"{target.num_embeddings} of {target.embedding_dim}; choose data.tokenizer.joint=true and equal widths, or "
            f"tied_embeddings=target"
        )
    # As an output layer, vectors of length sqrt(E) would make logits far too large.
    nn.init.normal_(target.weight, std=target.embedding_dim**-0.5)
    if target.padding_idx is not None:
        nn.init.zeros_(target.weight.data[target.padding_idx])
    output.weight = target.weight
    if which == "all":
        source.weight = target.weight
