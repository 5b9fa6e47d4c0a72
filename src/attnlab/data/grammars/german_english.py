"""German to English: genders in the accusative, and the verb in two places of its sentence.

`Ich möchte ein Bier` is `I'd like a beer`; `I'd` is one word.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from attnlab.data.grammars import english
from attnlab.data.grammars.english import Person
from attnlab.data.grammars.sentence import Grammar, SentencePair, Word, sentence, word, words

Gender = Literal["m", "f", "n"]


class Pronoun(NamedTuple):
    german: str
    english: str
    person: Person


class Noun(NamedTuple):
    german: str
    english: str
    gender: Gender


class Verb(NamedTuple):
    """A verb and what it goes with.

    forms: the present tense of ich, du, er, wir.
    """

    infinitive: str
    forms: dict[Person, str]
    participle: str
    english: str
    english_past: str
    objects: list[Noun]


class Modal(NamedTuple):
    """with_subject: what English joins to the subject, `'d`. english: the words after it."""

    forms: dict[Person, str]
    with_subject: str
    english: str


def _forms(text: str) -> dict[Person, str]:
    ich, du, er, wir = text.split()
    return {"1s": ich, "2s": du, "3s": er, "1p": wir}


PRONOUNS = [
    Pronoun("ich", "I", "1s"),
    Pronoun("du", "you", "2s"),
    Pronoun("er", "he", "3s"),
    Pronoun("sie", "she", "3s"),
    Pronoun("wir", "we", "1p"),
]
DRINKS = [
    Noun("Bier", "beer", "n"),
    Noun("Kaffee", "coffee", "m"),
    Noun("Tee", "tea", "m"),
    Noun("Limonade", "lemonade", "f"),
]
FOODS = [
    Noun("Apfel", "apple", "m"),
    Noun("Suppe", "soup", "f"),
    Noun("Eis", "ice cream", "n"),
    Noun("Banane", "banana", "f"),
    Noun("Orange", "orange", "f"),
    Noun("Ei", "egg", "n"),
    Noun("Kuchen", "cake", "m"),
]
BOOK = Noun("Buch", "book", "n")
LETTER = Noun("Brief", "letter", "m")
NEWSPAPER = Noun("Zeitung", "newspaper", "f")
POEM = Noun("Gedicht", "poem", "n")
THINGS = [
    BOOK,
    Noun("Auto", "car", "n"),
    Noun("Hut", "hat", "m"),
    Noun("Lampe", "lamp", "f"),
    Noun("Uhr", "watch", "f"),
    Noun("Regenschirm", "umbrella", "m"),
]
VERBS = [
    Verb("trinken", _forms("trinke trinkst trinkt trinken"), "getrunken", "drink", "drank", DRINKS),
    Verb("essen", _forms("esse isst isst essen"), "gegessen", "eat", "ate", FOODS),
    Verb(
        "kaufen",
        _forms("kaufe kaufst kauft kaufen"),
        "gekauft",
        "buy",
        "bought",
        [*THINGS, NEWSPAPER],
    ),
    Verb(
        "lesen",
        _forms("lese liest liest lesen"),
        "gelesen",
        "read",
        "read",
        [BOOK, LETTER, NEWSPAPER, POEM],
    ),
    Verb(
        "schreiben",
        _forms("schreibe schreibst schreibt schreiben"),
        "geschrieben",
        "write",
        "wrote",
        [BOOK, LETTER, POEM],
    ),
]
WOULD_LIKE = Modal(_forms("möchte möchtest möchte möchten"), "'d", "like to")
MODALS = [
    WOULD_LIKE,
    Modal(_forms("will willst will wollen"), "", "want to"),
    Modal(_forms("kann kannst kann können"), "", "can"),
    Modal(_forms("muss musst muss müssen"), "", "must"),
]
HAVE = _forms("habe hast hat haben")
# The stem of a German adjective, and its English word.
ADJECTIVES = [("alt", "old"), ("neu", "new"), ("klein", "small"), ("rot", "red"), ("blau", "blue")]
LATER = [("morgen", "tomorrow"), ("heute", "today")]


def grammar() -> Grammar:
    beer, coffee, _, lemonade = DRINKS
    nouns = [beer, coffee, lemonade, FOODS[0]]
    handful = [_wish(pronoun, noun) for pronoun in PRONOUNS[:4] for noun in nouns]
    return Grammar(
        lecture=handful[0],
        handful=handful,
        patterns=[_wishes(), _modals(), _plans(), _past(), _present(), _possessions()],
    )


def _wishes() -> list[SentencePair]:
    return [_wish(pronoun, noun) for pronoun in PRONOUNS for noun in [*DRINKS, *FOODS, *THINGS]]


def _wish(pronoun: Pronoun, noun: Noun) -> SentencePair:
    """`ich möchte ein Bier` → `I'd like a beer`."""
    source = [
        word(pronoun.german, "subject"),
        word(WOULD_LIKE.forms[pronoun.person], "wish"),
        *_einen(noun),
    ]
    target = [
        word(f"{pronoun.english}'d", "subject", maybe=["wish"]),
        word("like", "wish"),
        *_a(noun),
    ]
    return sentence(source, target)


def _modals() -> list[SentencePair]:
    """`er muss einen Brief schreiben` → `he must write a letter`: the infinitive at the end."""
    pairs = []
    for pronoun in PRONOUNS:
        for modal in MODALS:
            for verb in VERBS:
                for noun in verb.objects:
                    source = [
                        word(pronoun.german, "subject"),
                        word(modal.forms[pronoun.person], "modal"),
                        *_einen(noun),
                        word(verb.infinitive, "verb"),
                    ]
                    target = [
                        *_english_modal(pronoun, modal),
                        word(verb.english, "verb"),
                        *_a(noun),
                    ]
                    pairs.append(sentence(source, target))
    return pairs


def _english_modal(pronoun: Pronoun, modal: Modal) -> list[Word]:
    """`I'd like to`, `he wants to`, `we can`."""
    first, *others = modal.english.split()
    if not modal.with_subject:
        first = english.present(first, pronoun.person)
    # `to` goes with the infinitive as well, and `'d` is a part of the wish.
    joined = f"{pronoun.english}{modal.with_subject}"
    return [
        word(joined, "subject", maybe=["modal"] if modal.with_subject else []),
        word(first, "modal"),
        *(word(each, maybe=["modal", "verb"]) for each in others),
    ]


def _plans() -> list[SentencePair]:
    """`morgen kaufe ich einen Hut` → `I'll buy a hat tomorrow`: the verb in second place."""
    pairs = []
    for german, adverb in LATER:
        for pronoun in PRONOUNS:
            for verb in VERBS:
                for noun in verb.objects:
                    source = [
                        word(german, "time"),
                        word(verb.forms[pronoun.person], "verb"),
                        word(pronoun.german, "subject"),
                        *_einen(noun),
                    ]
                    target = [
                        word(f"{pronoun.english}'ll", "subject", maybe=["verb"]),
                        word(verb.english, "verb"),
                        *_a(noun),
                        word(adverb, "time"),
                    ]
                    pairs.append(sentence(source, target))
    return pairs


def _past() -> list[SentencePair]:
    """`gestern habe ich ein Buch gelesen` → `I read a book yesterday`: a participle at the end."""
    pairs = []
    for pronoun in PRONOUNS:
        for verb in VERBS:
            for noun in verb.objects:
                source = [
                    word("gestern", "time"),
                    word(HAVE[pronoun.person], maybe=["verb"]),
                    word(pronoun.german, "subject"),
                    *_einen(noun),
                    word(verb.participle, "verb"),
                ]
                target = [
                    word(pronoun.english, "subject"),
                    word(verb.english_past, "verb"),
                    *_a(noun),
                    word("yesterday", "time"),
                ]
                pairs.append(sentence(source, target))
    return pairs


def _present() -> list[SentencePair]:
    """`sie trinkt einen Tee` → `she drinks a tea`."""
    pairs = []
    for pronoun in PRONOUNS:
        for verb in VERBS:
            for noun in verb.objects:
                source = [
                    word(pronoun.german, "subject"),
                    word(verb.forms[pronoun.person], "verb"),
                    *_einen(noun),
                ]
                target = [
                    word(pronoun.english, "subject"),
                    word(english.present(verb.english, pronoun.person), "verb"),
                    *_a(noun),
                ]
                pairs.append(sentence(source, target))
    return pairs


def _possessions() -> list[SentencePair]:
    """`ich habe ein altes Auto` → `I have an old car`."""
    pairs = []
    for pronoun in PRONOUNS:
        for stem, adjective in ADJECTIVES:
            for noun in THINGS:
                einen, hut = _einen(noun)
                source = [
                    word(pronoun.german, "subject"),
                    word(HAVE[pronoun.person], "verb"),
                    einen,
                    word(f"{stem}{_ENDINGS[noun.gender]}", "adjective"),
                    hut,
                ]
                target = [
                    word(pronoun.english, "subject"),
                    word(english.present("have", pronoun.person), "verb"),
                    word(english.article(adjective), "article"),
                    word(adjective, "adjective"),
                    *words(noun.english, "noun"),
                ]
                pairs.append(sentence(source, target))
    return pairs


# Of the accusative singular, after the indefinite article.
_ARTICLES: dict[Gender, str] = {"m": "einen", "f": "eine", "n": "ein"}
_ENDINGS: dict[Gender, str] = {"m": "en", "f": "e", "n": "es"}


def _einen(noun: Noun) -> list[Word]:
    return [word(_ARTICLES[noun.gender], "article"), word(noun.german, "noun")]


def _a(noun: Noun) -> list[Word]:
    return [word(english.article(noun.english), "article"), *words(noun.english, "noun")]
