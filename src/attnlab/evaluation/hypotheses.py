"""Hypotheses as text, and as attention maps of a few example sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import EOS, PAD, SPECIAL_TOKENS, UNK
from attnlab.data.prepared import PreparedData, PreparedSplit
from attnlab.data.tokenizer import Tokenizer
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.ensemble import Ensemble
from attnlab.search.search import Hypothesis, Search, without_attention


@dataclass(frozen=True)
class HypothesisText:
    """Converts hypotheses to text.

    replace_unknown: replace each `<unk>` by the text of the source token that it attended to most,
        pads and `<eos>` excluded (Jean et al. 2015; Luong, Sutskever et al. 2015). An `<unk>`
        without attention on any source token stays. Hypotheses need attention weights.
    """

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    replace_unknown: bool

    def __call__(self, hypothesis: Hypothesis, source: Tensor, source_text: str) -> str:
        """source: (S,) the ids as the model read them, pads included. source_text: the text they
        encode.

        Raises ExperimentError for `replace_unknown` and a model without attention.
        """
        if not self.replace_unknown:
            return self.target_tokenizer.decode(hypothesis.tokens)
        if hypothesis.attention_weights is None:
            raise without_attention("search.replace_unknown")
        unknown = [t for t, token in enumerate(hypothesis.tokens) if token == UNK]
        words = self.source_tokenizer.surfaces(source_text) if unknown else []
        if not words:
            return self.target_tokenizer.decode(hypothesis.tokens)
        # (unknown, words)
        weights = hypothesis.attention_weights[unknown][:, (source != PAD) & (source != EOS)]
        strongest, places = weights.max(1)
        replaced = [
            words[place] if weight > 0 else SPECIAL_TOKENS[UNK]
            for weight, place in zip(strongest.tolist(), places.tolist(), strict=True)
        ]
        return self.target_tokenizer.decode(hypothesis.tokens, replaced)


LONGEST = 60  # tokens; longer sentences give unreadable pictures


def example_rows(split: PreparedSplit, count: int) -> list[int]:
    """Up to `count` rows of readable length, spread evenly over the split."""
    return spread(
        np.flatnonzero((split.source_lengths <= LONGEST) & (split.target_lengths <= LONGEST)), count
    )


def spread(rows: NDArray[np.int64], count: int) -> list[int]:
    """Up to `count` of the rows, at even distances."""
    return rows[
        np.linspace(0, len(rows) - 1, num=min(count, len(rows))).round().astype(int)
    ].tolist()


def example_maps(
    model: Seq2Seq | Ensemble, search: Search, data: PreparedData, name: str, count: int
) -> list[AttentionMap]:
    """Attention maps of the best hypotheses of a few rows of the split with this name; empty
    without attention.

    Rows and columns carry the tokens, `<eos>` included; a hypothesis that the length limit cut off
    has no `<eos>`.
    """
    split = data.split(name)
    rows = example_rows(split, count)
    if not rows:
        return []
    batch = split.batch(np.asarray(rows), model.padding).to(next(model.parameters()).device)
    found = search(model, batch.source, batch.source_mask, with_attention=True)
    maps = []
    for i, row in enumerate(rows):
        best = found[i][0]
        if best.attention_weights is None:
            continue
        written = best.tokens + [EOS] * best.finished
        # Unmasked attention also looks at pads; the picture shows the real tokens' share.
        columns = batch.source_mask[i]
        maps.append(
            AttentionMap(
                source_tokens=data.source_tokenizer.tokens(batch.source[i][columns].tolist()),
                target_tokens=data.target_tokenizer.tokens(written),
                weights=best.attention_weights[:, columns].float().cpu().numpy(),
                title=f"{split.source_text(row)} → {data.target_tokenizer.decode(best.tokens)}",
            )
        )
    return maps
