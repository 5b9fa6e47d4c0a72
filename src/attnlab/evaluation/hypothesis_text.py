"""From a hypothesis to its text, with the source's words for what the vocabulary lacks."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attnlab.batch import EOS, PAD, SPECIAL_TOKENS, UNK
from attnlab.data.tokenizer import Tokenizer
from attnlab.search.search import Hypothesis, without_attention


@dataclass(frozen=True)
class HypothesisText:
    """Makes text of hypotheses.

    replace_unknown: in place of each `<unk>` stands the text of the source token that it attended to most, pads and
        `<eos>` left out (Jean et al. 2015; Luong, Sutskever et al. 2015). An `<unk>` that attended to no source
        token at all stays. It takes hypotheses with their attention weights.
    """

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    replace_unknown: bool

    def __call__(self, hypothesis: Hypothesis, source: Tensor, source_text: str) -> str:
        """source: (S,) the ids as the model read them, pads included. source_text: what they were made of.

        Raises ExperimentError where unknown tokens are to be replaced and the model has no attention.
        """
        if not self.replace_unknown:
            return self.target_tokenizer.decode(hypothesis.tokens)
        if hypothesis.attention_weights is None:
            raise without_attention("search.replace_unknown")
        unknown = [t for t, token in enumerate(hypothesis.tokens) if token == UNK]
        words = self.source_tokenizer.surfaces(source_text) if unknown else []
        if not words:
            return self.target_tokenizer.decode(hypothesis.tokens)
        weights = hypothesis.attention_weights[unknown][:, (source != PAD) & (source != EOS)]  # (unknown, words)
        strongest, places = weights.max(1)
        replaced = [
            words[place] if weight > 0 else SPECIAL_TOKENS[UNK]
            for weight, place in zip(strongest.tolist(), places.tolist(), strict=True)
        ]
        return self.target_tokenizer.decode(hypothesis.tokens, replaced)
