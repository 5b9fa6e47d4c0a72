"""What must stand in the files that the stages hand on; a page is only made of files that hold it.

More keys than these may be there.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict  # typing has one that pydantic reads from Python 3.12 on

Count = Annotated[int, Field(ge=0, lt=2**53)]
Position = Annotated[int, Field(gt=-(2**31), lt=2**31)]

Metrics = dict[str, float | None]
Signatures = dict[str, str]


class Lengths(TypedDict):
    """Of one side of a split, in tokens."""

    tokens: Count
    mean_length: float
    p50_length: Count
    p95_length: Count
    max_length: Count
    unknown_tokens: Count
    unknown_rate: float
    length_histogram: Annotated[list[tuple[Count, Count]], Field(min_length=1)]


class _Split(TypedDict):
    rows: Count
    dropped: dict[str, Count]


class PairsOfSplit(_Split):
    pairs: Count
    source: Lengths
    target: Lengths


class SentencesOfSplit(_Split):
    sentences: Count
    labels: dict[str, Count]
    text: Lengths


class _SplitsOfPairs(TypedDict):
    train: PairsOfSplit
    validation: PairsOfSplit
    test: PairsOfSplit


class _SplitsOfSentences(TypedDict):
    train: SentencesOfSplit
    validation: SentencesOfSplit
    test: SentencesOfSplit


class _TwoVocabularies(TypedDict):
    source: Count
    target: Count


class _OneVocabulary(TypedDict):
    text: Count


class PairStats(TypedDict):
    vocabulary: _TwoVocabularies
    splits: _SplitsOfPairs


class SentenceStats(TypedDict):
    vocabulary: _OneVocabulary
    splits: _SplitsOfSentences


class PairInfo(TypedDict):
    source_language: str | None
    target_language: str | None
    joint: bool


class LabelInfo(TypedDict):
    labels: Annotated[list[str], Field(min_length=2)]


# Quality beside these, None where there is nothing to measure.
OfLength = TypedDict("OfLength", {"from": Count, "to": Count, "sentences": Count})


class Offset(TypedDict):
    offset: Position
    tokens: Count


class WrongLink(TypedDict):
    token: str
    links: Count
    wrong: Count


class Confusions(TypedDict):
    labels: Annotated[list[str], Field(min_length=1)]
    counts: Annotated[list[list[Count]], Field(min_length=1)]


class Translated(TypedDict):
    source: str
    reference: str
    hypothesis: str
    source_length: Count
    exact: bool
    score: float | None


class Predicted(TypedDict):
    text: str
    label: str
    prediction: str
    probability: float
    correct: bool
    length: Count


class Seeded(TypedDict):
    """Of the config in a model folder."""

    seed: int


class Done(TypedDict):
    """Of `done.json`; what it has beside this may be missing."""

    step: Count


AnyObject = dict[str, Any]
