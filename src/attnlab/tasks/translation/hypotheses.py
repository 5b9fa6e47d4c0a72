"""Hypotheses as text, and attention maps of the hypotheses of a few example sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import EOS, PAD, UNK
from attnlab.data.prepared import PreparedData, PreparedSplit
from attnlab.data.tokenizer import UNKNOWN_SURFACE, Surface, Tokenizer
from attnlab.evaluation.attention_map import AttentionMap, evenly_spaced
from attnlab.evaluation.edit_alignment import (
    links_of_hypothesis,
    places_in_reference,
    wrong_tokens,
)
from attnlab.evaluation.examples import LONGEST_PAIR
from attnlab.model.attention.intervention import Intervention
from attnlab.model.seq2seq import Seq2Seq
from attnlab.search.ensemble import Ensemble
from attnlab.search.search import Hypothesis, Search, Stepwise, attention_required
from attnlab.tasks.translation.intervened import Intervened
from attnlab.tasks.translation.posterior import with_posteriors


@dataclass(frozen=True)
class HypothesisText:
    """Converts a hypothesis to text.

    replace_unknown: replace each `<unk>` by the text of the source token that it attended to most,
        pads and `<eos>` excluded (Jean et al. 2015; Luong, Sutskever et al. 2015). An `<unk>`
        without attention on any source token stays. Hypotheses need attention weights.
    """

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    replace_unknown: bool

    def __call__(self, hypothesis: Hypothesis, source: Tensor, source_text: str) -> str:
        """The text of a hypothesis.

        source: (S,) the ids as the model read them, pads included.
        source_text: the text that the ids encode.

        Raises ExperimentError for `replace_unknown` and a model without attention.
        """
        (words,) = self.source_tokenizer.numbered_words([source_text])
        surfaces: list[Surface] = []
        if self.replace_unknown and UNK in hypothesis.tokens:
            surfaces = self.source_tokenizer.surfaces(source_text)
        return self.of_words(hypothesis, source, surfaces, words)

    def of_words(
        self,
        hypothesis: Hypothesis,
        source: Tensor,
        surfaces: Sequence[Surface],
        numbered: Sequence[str],
    ) -> str:
        """The text of a hypothesis whose source is no text any more, after an edit of its tokens.

        source: (S,) the ids as the model read them, pads included.
        surfaces: what each real token of the source stands for.
        numbered: the numbered unknown words of the source.

        Raises ExperimentError for `replace_unknown` and a model without attention.
        """
        if not self.replace_unknown:
            return self.target_tokenizer.decode(hypothesis.tokens, numbered=numbered)
        if hypothesis.attention_weights is None:
            raise attention_required("search.replace_unknown")

        unknown = [t for t, token in enumerate(hypothesis.tokens) if token == UNK]
        if not unknown or not surfaces:
            return self.target_tokenizer.decode(hypothesis.tokens, numbered=numbered)

        is_word = (source != PAD) & (source != EOS)
        weights = hypothesis.attention_weights[unknown][:, is_word]  # (unknown, source words)
        highest_weights, positions = weights.max(1)
        replacements = []
        for weight, position in zip(highest_weights.tolist(), positions.tolist(), strict=True):
            replacements.append(surfaces[position] if weight > 0 else UNKNOWN_SURFACE)
        return self.target_tokenizer.decode(hypothesis.tokens, replacements, numbered)


def readable_rows(split: PreparedSplit) -> NDArray[np.int64]:
    """The rows whose source and target are of readable length."""
    source_is_readable = split.source_lengths <= LONGEST_PAIR
    target_is_readable = split.target_lengths <= LONGEST_PAIR
    return np.flatnonzero(source_is_readable & target_is_readable)


def example_rows(split: PreparedSplit, count: int) -> list[int]:
    """Up to `count` rows of readable length, evenly spaced over the split."""
    return evenly_spaced(readable_rows(split), count)


def example_maps(
    model: Seq2Seq | Ensemble,
    search: Search,
    data: PreparedData,
    name: str,
    count: int,
    intervention: Intervention | None = None,
) -> list[AttentionMap]:
    """Attention maps of the best hypotheses of a few rows of the split with this name.

    Rows and columns carry the tokens, `<eos>` included; a hypothesis that the length limit cut off
    has no `<eos>`. A model without attention has no maps. A map knows which of its target tokens
    differ from the reference at their place, and the corpus's alignment, if it has one.

    intervention: under which a single model writes; None for none.
    """
    rows = example_rows(data.split(name), count)
    return attention_maps(model, search, data, name, rows, intervention)


def attention_maps(
    model: Seq2Seq | Ensemble,
    search: Search,
    data: PreparedData,
    name: str,
    rows: Sequence[int],
    intervention: Intervention | None = None,
) -> list[AttentionMap]:
    """As `example_maps`, of these rows."""
    split = data.split(name)
    if not rows:
        return []

    device = next(model.parameters()).device
    batch = split.batch(np.asarray(rows), model.padding).to(device)
    searched: Stepwise = model
    if intervention is not None:
        assert isinstance(model, Seq2Seq)
        searched = Intervened(model, intervention)
    found = search(searched, batch.source, batch.source_mask, with_attention=True)
    found = with_posteriors(model, batch.source, batch.source_mask, found, intervention)
    to_text = HypothesisText(data.source_tokenizer, data.target_tokenizer, replace_unknown=False)
    maps = []
    for i, row in enumerate(rows):
        best = found[i][0]
        if best.attention_weights is None:
            continue
        target_ids = [*best.tokens, EOS] if best.finished else best.tokens
        # Unmasked attention also looks at pads; the picture shows the real tokens' share.
        columns = batch.source_mask[i]
        reference_ids = [*split.target[row].tolist(), EOS]
        places = places_in_reference(target_ids, reference_ids)
        source_text = split.source_text(row)
        hypothesis = to_text(best, batch.source[i], source_text)
        attention_map = AttentionMap(
            source_tokens=data.source_tokenizer.tokens(batch.source[i][columns].tolist()),
            target_tokens=data.target_tokenizer.tokens(target_ids),
            weights=best.attention_weights[:, columns].float().cpu().numpy(),
            title=f"{source_text} → {hypothesis}",
            sure_links=links_of_hypothesis(split.links("sure", row), places),
            possible_links=links_of_hypothesis(split.links("possible", row), places),
            wrong_targets=wrong_tokens(target_ids, reference_ids),
        )
        maps.append(attention_map)
    return maps
