"""Korean to English: particles by the final consonant, and the verb at the end.

The style is that of polite statements (`-ㅂ니다`). A word is what stands between spaces (어절), a
noun with its particle: `학생입니다` is one word, whose links go to `am`, `a` and `student`. So a
sentence is read as everybody writes it; to split particles off would take an analyser, which may
err, and would show words that nobody writes.
"""

from __future__ import annotations

from typing import NamedTuple

from attnlab.data.grammars import english, korean
from attnlab.data.grammars.english import Person, is_plural
from attnlab.data.grammars.sentence import Grammar, SentencePair, Word, sentence, word, words


class Subject(NamedTuple):
    korean: str
    english: str
    person: Person


class Noun(NamedTuple):
    """is_counted: English has `a book`, but `coffee`."""

    korean: str
    english: str
    is_counted: bool = True


class Adjective(NamedTuple):
    """korean: the form before a noun."""

    korean: str
    english: str


class Quality(NamedTuple):
    """korean: the polite form at the end of a sentence."""

    korean: str
    english: str


class Verb(NamedTuple):
    """A verb with its objects and the places where one does it.

    korean: the polite form. stem: before `-고 싶습니다`.
    """

    korean: str
    stem: str
    english: str
    objects: list[Noun]
    places: list[tuple[str, str]]


SUBJECTS = [
    Subject("저", "I", "1s"),
    Subject("그", "he", "3s"),
    Subject("그녀", "she", "3s"),
    Subject("우리", "we", "1p"),
    Subject("민수", "Minsu", "3s"),
    Subject("지민", "Jimin", "3s"),
    Subject("제 친구", "my friend", "3s"),
]
PROFESSIONS = [
    Noun("학생", "student"),
    Noun("의사", "doctor"),
    Noun("가수", "singer"),
    Noun("배우", "actor"),
    Noun("기자", "journalist"),
    Noun("작가", "writer"),
    Noun("화가", "painter"),
    Noun("간호사", "nurse"),
    Noun("변호사", "lawyer"),
    Noun("교사", "teacher"),
]
COFFEE = Noun("커피", "coffee", is_counted=False)
TEA = Noun("차", "tea", is_counted=False)
WATER = Noun("물", "water", is_counted=False)
MILK = Noun("우유", "milk", is_counted=False)
BREAD = Noun("빵", "bread", is_counted=False)
APPLE = Noun("사과", "apple")
ORANGE = Noun("오렌지", "orange")
EGG = Noun("달걀", "egg")
BOOK = Noun("책", "book")
NEWSPAPER = Noun("신문", "newspaper")
LETTER = Noun("편지", "letter")
POEM = Noun("시", "poem")
HAT = Noun("모자", "hat")
UMBRELLA = Noun("우산", "umbrella")
BAG = Noun("가방", "bag")
FILM = Noun("영화", "film")
PLAY = Noun("연극", "play")
HOME = ("집", "at home")
SCHOOL = ("학교", "at school")
LIBRARY = ("도서관", "in the library")
PARK = ("공원", "in the park")
MARKET = ("시장", "at the market")
VERBS = [
    Verb("마십니다", "마시고", "drink", [COFFEE, TEA, WATER, MILK], [HOME, SCHOOL, PARK]),
    Verb("먹습니다", "먹고", "eat", [BREAD, APPLE, ORANGE, EGG], [HOME, SCHOOL, PARK]),
    Verb("읽습니다", "읽고", "read", [BOOK, NEWSPAPER, LETTER, POEM], [HOME, LIBRARY, PARK]),
    Verb("씁니다", "쓰고", "write", [BOOK, LETTER, POEM], [HOME, LIBRARY, PARK]),
    Verb("삽니다", "사고", "buy", [BREAD, APPLE, HAT, UMBRELLA, BAG], [MARKET]),
    Verb("봅니다", "보고", "watch", [FILM, PLAY], [HOME, SCHOOL, PARK]),
]
OWNED = [BOOK, LETTER, HAT, UMBRELLA, BAG]
ADJECTIVES = [
    Adjective("빨간", "red"),
    Adjective("작은", "small"),
    Adjective("큰", "big"),
    Adjective("오래된", "old"),
    Adjective("새", "new"),
]
# What may be said of each group of things.
QUALITIES = [
    (
        [COFFEE, TEA, WATER, MILK],
        [
            Quality("뜨겁습니다", "hot"),
            Quality("차갑습니다", "cold"),
            Quality("맛있습니다", "delicious"),
        ],
    ),
    (
        [BOOK, LETTER, FILM, PLAY, POEM],
        [
            Quality("재미있습니다", "interesting"),
            Quality("지루합니다", "boring"),
            Quality("깁니다", "long"),
        ],
    ),
]


def grammar() -> Grammar:
    handful = [
        _is_profession(subject, profession)
        for subject in SUBJECTS[:4]
        for profession in PROFESSIONS[:2]
    ]
    handful += [
        _does(subject, VERBS[0], noun) for subject in SUBJECTS[:4] for noun in VERBS[0].objects[:2]
    ]
    return Grammar(
        lecture=handful[0],
        handful=handful,
        patterns=[
            _professions(),
            _actions(),
            _actions_in_places(),
            _possessions(),
            _qualities(),
            _wishes(),
        ],
    )


def _professions() -> list[SentencePair]:
    return [
        _is_profession(subject, profession) for subject in SUBJECTS for profession in PROFESSIONS
    ]


def _is_profession(subject: Subject, profession: Noun) -> SentencePair:
    """`저는 학생입니다` → `I am a student`."""
    source = [*_topic(subject), word(f"{profession.korean}입니다", "verb", "noun")]
    target = [*_english(subject), word(english.be(subject.person), "verb")]
    if is_plural(subject.person):
        target.append(word(f"{profession.english}s", "noun"))
    else:
        target += _a(profession)
    return sentence(source, target)


def _actions() -> list[SentencePair]:
    return [
        _does(subject, verb, noun)
        for subject in SUBJECTS
        for verb in VERBS
        for noun in verb.objects
    ]


def _does(subject: Subject, verb: Verb, noun: Noun) -> SentencePair:
    """`저는 커피를 마십니다` → `I drink coffee`."""
    source = [
        *_topic(subject),
        word(korean.object_(noun.korean), "noun"),
        word(verb.korean, "verb"),
    ]
    return sentence(source, [*_english_does(subject, verb), *_a(noun)])


def _actions_in_places() -> list[SentencePair]:
    """`그는 집에서 책을 읽습니다` → `he reads a book at home`."""
    pairs = []
    for subject in SUBJECTS:
        for verb in VERBS:
            for noun in verb.objects:
                for place, english_place in verb.places:
                    source = [
                        *_topic(subject),
                        word(f"{place}에서", "place"),
                        word(korean.object_(noun.korean), "noun"),
                        word(verb.korean, "verb"),
                    ]
                    target = [
                        *_english_does(subject, verb),
                        *_a(noun),
                        *_in_place(english_place),
                    ]
                    pairs.append(sentence(source, target))
    return pairs


def _possessions() -> list[SentencePair]:
    """`지민은 새 모자가 있습니다` → `Jimin has a new hat`."""
    pairs = []
    for subject in SUBJECTS:
        for adjective in ADJECTIVES:
            for noun in OWNED:
                source = [
                    *_topic(subject),
                    word(adjective.korean, "adjective"),
                    word(korean.subject(noun.korean), "noun"),
                    word("있습니다", "verb"),
                ]
                target = [
                    *_english(subject),
                    word(english.present("have", subject.person), "verb"),
                    word(english.article(adjective.english), maybe=["noun", "adjective"]),
                    word(adjective.english, "adjective"),
                    word(noun.english, "noun"),
                ]
                pairs.append(sentence(source, target))
    return pairs


def _qualities() -> list[SentencePair]:
    """`커피가 아주 뜨겁습니다` → `the coffee is very hot`.

    And `이 책은 깁니다` → `this book is long`, with another particle.
    """
    pairs = []
    for nouns, qualities in QUALITIES:
        for noun in nouns:
            for quality in qualities:
                hot = word(quality.korean, "quality", "verb")
                is_hot = [word("is", "verb"), word(quality.english, "quality")]
                is_very_hot = [is_hot[0], word("very", "degree"), is_hot[1]]
                very = word("아주", "degree")

                named = [word(korean.subject(noun.korean), "noun")]
                the = [word("the", maybe=["noun"]), word(noun.english, "noun")]
                pairs.append(sentence([*named, hot], [*the, *is_hot]))
                pairs.append(sentence([*named, very, hot], [*the, *is_very_hot]))

                shown = [word("이", "this"), word(korean.topic(noun.korean), "noun")]
                this = [word("this", "this"), word(noun.english, "noun")]
                pairs.append(sentence([*shown, hot], [*this, *is_hot]))
                pairs.append(sentence([*shown, very, hot], [*this, *is_very_hot]))
    return pairs


def _wishes() -> list[SentencePair]:
    """`저는 물을 마시고 싶습니다` → `I want to drink water`."""
    pairs = []
    for subject in SUBJECTS:
        for verb in VERBS:
            for noun in verb.objects:
                source = [
                    *_topic(subject),
                    word(korean.object_(noun.korean), "noun"),
                    word(verb.stem, "verb"),
                    *words(_want(subject.person), "wish"),
                ]
                target = [
                    *_english(subject),
                    word(english.present("want", subject.person), "wish"),
                    word("to", maybe=["wish", "verb"]),
                    word(verb.english, "verb"),
                    *_a(noun),
                ]
                pairs.append(sentence(source, target))
    return pairs


def _want(person: Person) -> str:
    """One's own wish is `싶습니다`, that of others `싶어 합니다`."""
    return "싶습니다" if person.startswith("1") else "싶어 합니다"


def _topic(subject: Subject) -> list[Word]:
    return _subject_words(korean.topic(subject.korean))


def _english(subject: Subject) -> list[Word]:
    return _subject_words(subject.english)


def _subject_words(text: str) -> list[Word]:
    """The words of a subject, each with a meaning of its own: `제 친구는` is `my friend`."""
    return [word(each, f"subject {i}") for i, each in enumerate(text.split())]


def _in_place(place: str) -> list[Word]:
    """`in the library`, of `도서관에서`, whose article has no partner."""
    return [
        word(each, maybe=["place"]) if each == "the" else word(each, "place")
        for each in place.split()
    ]


def _english_does(subject: Subject, verb: Verb) -> list[Word]:
    form = english.present(verb.english, subject.person)
    return [*_english(subject), word(form, "verb")]


def _a(noun: Noun) -> list[Word]:
    """`a book`, whose article has no partner in Korean, and `coffee`."""
    article = [word(english.article(noun.english), maybe=["noun"])] if noun.is_counted else []
    return [*article, word(noun.english, "noun")]
