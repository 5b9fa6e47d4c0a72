"""What a translator answers: translations, and scores of given targets.

Axes: T target tokens, S source tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.tasks.requests import notebook_frame


@dataclass(frozen=True, eq=False)
class Translation:
    """The hypothesis that a search wrote for one source.

    Axes: T target tokens, S source tokens, each with its `<eos>` where there is one.

    source: as it was given. Its tokens are those of the cleaned source, which the model reads.
    text: the detokenised translation.
    tokens: T, with `<eos>` unless the length limit cut the translation off.
    score: as the search defines it: the log-probability in nats, divided by the length penalty
        where there is one.
    source_tokens: S.
    attention: (T, S) float32, the mean over the heads; None for a model without attention.
    alternatives: the other hypotheses of an n-best list, best first.
    """

    source: str
    text: str
    tokens: list[str]
    score: float
    source_tokens: list[str]
    attention: NDArray[np.float32] | None = field(repr=False)
    alternatives: list[Translation] = field(default_factory=list, repr=False)

    @property
    def map(self) -> AttentionMap:
        """The attention with its tokens, to draw.

        Raises ExperimentError for a model without attention.
        """
        return attention_map(self, title=f"{self.source} → {self.text}")

    def _repr_html_(self) -> str:
        return notebook_page(self, self.text)


@dataclass(frozen=True, eq=False)
class Scored:
    """How likely a model finds a given target.

    source, target: as they were given.
    tokens: T target tokens, the last one `<eos>`.
    log_probs: (T,) float32, the log-probability in nats of each token after those before it.
    source_tokens, attention: as in `Translation`.
    """

    source: str
    target: str
    tokens: list[str]
    log_probs: NDArray[np.float32]
    source_tokens: list[str]
    attention: NDArray[np.float32] | None = field(repr=False)

    @property
    def total(self) -> float:
        """The log-probability of the whole target, in nats."""
        return float(self.log_probs.sum(dtype=np.float64))

    @property
    def map(self) -> AttentionMap:
        """The attention with its tokens, to draw.

        Raises ExperimentError for a model without attention.
        """
        return attention_map(self, title=f"{self.source} → {self.target}")

    def _repr_html_(self) -> str:
        return notebook_page(self, self.target)


def attention_map(answer: Translation | Scored, title: str) -> AttentionMap:
    """The attention of an answer with its tokens, to draw.

    Raises ExperimentError for a model without attention.
    """
    if answer.attention is None:
        raise ExperimentError("this model has no attention to draw")
    return AttentionMap(answer.source_tokens, answer.tokens, answer.attention, title)


def notebook_page(answer: Translation | Scored, text: str) -> str:
    """The heat map as a notebook shows it.

    text: what is shown for a model without attention.
    """
    if answer.attention is None:
        return f"<p>{escape(text)}</p>"
    from attnlab.plots.heat_map_html import heat_map_page  # costs an import of matplotlib

    # Source tokens stand upright above the columns, so the longest one adds to the height.
    longest_source_token = max(map(len, answer.source_tokens), default=0)
    height = 140 + 9 * min(longest_source_token, 16) + 44 * len(answer.tokens)
    return notebook_frame(heat_map_page([answer.map], title=None), height)


# A hypothesis of a plain answer, as MLflow names its types; tokens and attention come on request.
PLAIN_HYPOTHESIS = {
    "text": "string",
    "score": "double",
    "tokens?": ["string"],
    "source_tokens?": ["string"],
    "attention?": [["double"]],
}


def plain_translation(answer: Translation, attention: bool = False) -> dict[str, Any]:
    """`text` and `score`, and `alternatives` of an n-best list.

    With attention also `tokens`, `source_tokens` and `attention`. `attention` has a row for each
    token and a column for each source token; it is None for a model without attention.
    """
    plain: dict[str, Any] = {"text": answer.text, "score": answer.score}
    if attention:
        plain["tokens"] = answer.tokens
        plain["source_tokens"] = answer.source_tokens
        plain["attention"] = None if answer.attention is None else answer.attention.tolist()
    if answer.alternatives:
        alternatives = answer.alternatives
        plain["alternatives"] = [plain_translation(each, attention) for each in alternatives]
    return plain
