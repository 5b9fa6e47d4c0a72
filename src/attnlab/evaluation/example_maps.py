"""The attention of a few sentences while the model runs freely, as pictures want it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.batch import EOS, PAD, Padding
from attnlab.data.padding import make_batch
from attnlab.data.prepared import PreparedSplit
from attnlab.data.tokenizer import Tokenizer
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.ensemble import Ensemble
from attnlab.search.search import Search

LONGEST = 60  # tokens; a longer sentence makes no readable picture


def example_rows(split: PreparedSplit, count: int) -> list[int]:
    """Up to `count` rows of readable length, spread evenly over the split: the same ones every time."""
    readable = np.flatnonzero((split.source_lengths <= LONGEST) & (split.target_lengths <= LONGEST))
    if len(readable) == 0:
        return []
    places = np.linspace(0, len(readable) - 1, num=min(count, len(readable))).round().astype(int)
    return readable[places].tolist()


def example_maps(
    model: Seq2Seq | Ensemble,
    search: Search,
    split: PreparedSplit,
    rows: Sequence[int],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    padding: Padding,
) -> list[AttentionMap]:
    """The attention maps of the best hypotheses of some rows; none where the model has no attention.

    Rows and columns carry the tokens, `<eos>` included; a hypothesis that the length limit cut off has no `<eos>`.
    """
    if not rows:
        return []
    batch = make_batch([split.source_ids(row) for row in rows], [[] for _ in rows], padding)
    device = next(model.parameters()).device
    found = search(model, batch.source.to(device), batch.source_mask.to(device), with_attention=True)
    maps = []
    for i, row in enumerate(rows):
        best = found[i][0]
        if best.attention_weights is None:
            continue
        written = best.tokens + [EOS] * best.finished
        # Unmasked attention also looks at pads; the picture shows the real tokens' share.
        columns = (batch.source[i] != PAD).numpy()
        maps.append(
            AttentionMap.from_sentence(
                source_tokens=source_tokenizer.tokens(batch.source[i].tolist()),
                target_tokens=target_tokenizer.tokens(written),
                weights=best.attention_weights.float().cpu().numpy(),
                source_mask=columns,
                target_mask=np.ones(len(written), dtype=bool),
                title=f"{split.source_text(row)} → {target_tokenizer.decode(best.tokens)}",
            )
        )
    return maps
