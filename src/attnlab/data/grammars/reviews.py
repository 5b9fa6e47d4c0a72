"""Short film reviews of one opinion each, in English and Korean."""

from __future__ import annotations

from typing import Literal, NamedTuple

from attnlab.data.grammars import korean

Label = Literal["negative", "positive"]


class Review(NamedTuple):
    text: str
    label: Label


class _Opinion(NamedTuple):
    """Something that one says of a film, and its denial, with the label of each."""

    said: str
    denied: str
    label: Label

    @property
    def denied_label(self) -> Label:
        return "positive" if self.label == "negative" else "negative"


_ENGLISH_OPENINGS = [
    "",
    "I saw this film yesterday and ",
    "we watched it at home and ",
    "I saw it with a friend and ",
]
_ENGLISH_TOPICS = ["the film", "the story", "the music", "the ending", "the cast"]
_ENGLISH_DEGREES = ["", "really ", "very "]
_ENGLISH_ADJECTIVES: dict[Label, list[str]] = {
    "positive": ["good", "funny", "beautiful", "clever", "moving"],
    "negative": ["bad", "boring", "silly", "weak", "dull"],
}

_KOREAN_OPENINGS = ["", "어제 이 영화를 봤는데 ", "집에서 봤는데 ", "친구와 함께 봤는데 "]
_KOREAN_TOPICS = ["영화", "이야기", "음악", "결말", "연기"]
_KOREAN_DEGREES = ["", "정말 ", "아주 "]
_KOREAN_OPINIONS = [
    _Opinion("좋았습니다", "좋지 않았습니다", "positive"),
    _Opinion("훌륭했습니다", "훌륭하지 않았습니다", "positive"),
    _Opinion("아름다웠습니다", "아름답지 않았습니다", "positive"),
    _Opinion("감동적이었습니다", "감동적이지 않았습니다", "positive"),
    _Opinion("인상적이었습니다", "인상적이지 않았습니다", "positive"),
    _Opinion("나빴습니다", "나쁘지 않았습니다", "negative"),
    _Opinion("지루했습니다", "지루하지 않았습니다", "negative"),
    _Opinion("유치했습니다", "유치하지 않았습니다", "negative"),
    _Opinion("어색했습니다", "어색하지 않았습니다", "negative"),
    _Opinion("실망스러웠습니다", "실망스럽지 않았습니다", "negative"),
]


def english() -> list[Review]:
    """`I saw this film yesterday and the music was not good`: negative."""
    opinions = [
        _Opinion(adjective, f"not {adjective}", label)
        for label, adjectives in _ENGLISH_ADJECTIVES.items()
        for adjective in adjectives
    ]
    topics = [f"{topic} was" for topic in _ENGLISH_TOPICS]
    return _reviews(_ENGLISH_OPENINGS, topics, _ENGLISH_DEGREES, opinions)


def korean_reviews() -> list[Review]:
    """`친구와 함께 봤는데 음악이 좋지 않았습니다`: negative."""
    topics = [korean.subject(topic) for topic in _KOREAN_TOPICS]
    return _reviews(_KOREAN_OPENINGS, topics, _KOREAN_DEGREES, _KOREAN_OPINIONS)


def _reviews(
    openings: list[str], topics: list[str], degrees: list[str], opinions: list[_Opinion]
) -> list[Review]:
    """Every topic and opinion behind every opening; what is denied has no degree."""
    reviews = []
    for opening in openings:
        for topic in topics:
            for opinion in opinions:
                for degree in degrees:
                    text = f"{opening}{topic} {degree}{opinion.said}"
                    reviews.append(Review(_as_sentence(text), opinion.label))
                denied = f"{opening}{topic} {opinion.denied}"
                reviews.append(Review(_as_sentence(denied), opinion.denied_label))
    return reviews


def _as_sentence(text: str) -> str:
    """The text with a capital letter in front, where its script has one."""
    return text[0].upper() + text[1:]
