"""English to French: genders and agreement, adjectives behind their noun, elision, clitics.

`I am a student` is `je suis étudiant`: `je` is masculine here, and so are `tu`, `nous` and `ils`,
for English does not say who speaks.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from attnlab.data.grammars import english
from attnlab.data.grammars.english import Person, is_plural
from attnlab.data.grammars.sentence import Grammar, SentencePair, Word, sentence, word

Gender = Literal["m", "f"]
VOWELS = "aeiouâàéèêîôû"


class Pronoun(NamedTuple):
    """clitic: the object form of the same person, which stands before the verb."""

    english: str
    english_object: str
    french: str
    clitic: str
    person: Person
    gender: Gender


class Noun(NamedTuple):
    english: str
    french: str
    gender: Gender


class Adjective(NamedTuple):
    """An adjective with its masculine, feminine and masculine plural form."""

    english: str
    masculine: str
    feminine: str
    plural: str


class Profession(NamedTuple):
    english: str
    masculine: str
    feminine: str


class Verb(NamedTuple):
    """french: the present tense of je, tu, il, nous, ils."""

    english: str
    french: dict[Person, str]


def _verb(name: str, forms: str) -> Verb:
    je, tu, il, nous, ils = forms.split()
    return Verb(name, {"1s": je, "2s": tu, "3s": il, "1p": nous, "3p": ils})


PRONOUNS = [
    Pronoun("I", "me", "je", "me", "1s", "m"),
    Pronoun("you", "you", "tu", "te", "2s", "m"),
    Pronoun("he", "him", "il", "le", "3s", "m"),
    Pronoun("she", "her", "elle", "la", "3s", "f"),
    Pronoun("we", "us", "nous", "nous", "1p", "m"),
    Pronoun("they", "them", "ils", "les", "3p", "m"),
]
PROFESSIONS = [
    Profession("student", "étudiant", "étudiante"),
    Profession("doctor", "médecin", "médecin"),
    Profession("singer", "chanteur", "chanteuse"),
    Profession("artist", "artiste", "artiste"),
    Profession("lawyer", "avocat", "avocate"),
    Profession("engineer", "ingénieur", "ingénieure"),
    Profession("musician", "musicien", "musicienne"),
    Profession("baker", "boulanger", "boulangère"),
    Profession("nurse", "infirmier", "infirmière"),
    Profession("farmer", "agriculteur", "agricultrice"),
]
MOODS = [
    Adjective("tired", "fatigué", "fatiguée", "fatigués"),
    Adjective("happy", "heureux", "heureuse", "heureux"),
    Adjective("sad", "triste", "triste", "tristes"),
    Adjective("ready", "prêt", "prête", "prêts"),
    Adjective("tall", "grand", "grande", "grands"),
    Adjective("young", "jeune", "jeune", "jeunes"),
]
COLOURS = [
    Adjective("black", "noir", "noire", "noirs"),
    Adjective("white", "blanc", "blanche", "blancs"),
    Adjective("red", "rouge", "rouge", "rouges"),
    Adjective("green", "vert", "verte", "verts"),
    Adjective("blue", "bleu", "bleue", "bleus"),
]
ANIMALS = [
    Noun("cat", "chat", "m"),
    Noun("dog", "chien", "m"),
    Noun("bird", "oiseau", "m"),
    Noun("cow", "vache", "f"),
    Noun("mouse", "souris", "f"),
]
THINGS = [
    Noun("book", "livre", "m"),
    Noun("umbrella", "parapluie", "m"),
    Noun("car", "voiture", "f"),
    Noun("house", "maison", "f"),
    Noun("flower", "fleur", "f"),
    Noun("apple", "pomme", "f"),
]
BE = _verb("be", "suis es est sommes sont")
WITH_OBJECT = [
    _verb("have", "ai as a avons ont"),
    _verb("see", "vois vois voit voyons voient"),
    _verb("want", "veux veux veut voulons veulent"),
    _verb("draw", "dessine dessines dessine dessinons dessinent"),
    _verb("buy", "achète achètes achète achetons achètent"),
]
WITHOUT_OBJECT = [
    _verb("sleep", "dors dors dort dormons dorment"),
    _verb("eat", "mange manges mange mangeons mangent"),
    _verb("wait", "attends attends attend attendons attendent"),
    _verb("run", "cours cours court courons courent"),
]
WITH_CLITIC = [
    _verb("love", "aime aimes aime aimons aiment"),
    _verb("see", "vois vois voit voyons voient"),
    _verb("hear", "entends entends entend entendons entendent"),
    _verb("know", "connais connais connaît connaissons connaissent"),
]


def grammar() -> Grammar:
    handful = [
        _is_profession(pronoun, profession)
        for pronoun in PRONOUNS[:4]
        for profession in PROFESSIONS[:4]
    ]
    return Grammar(
        lecture=handful[0],
        handful=handful,
        patterns=[
            _professions(),
            _moods(),
            _things_with_colours(),
            _objects(),
            _coloured_objects(),
            _animals(),
            _clitics(),
        ],
    )


def _professions() -> list[SentencePair]:
    return [
        _is_profession(pronoun, profession) for pronoun in PRONOUNS for profession in PROFESSIONS
    ]


def _is_profession(pronoun: Pronoun, profession: Profession) -> SentencePair:
    """`she is a student` → `elle est étudiante`: French has no article here."""
    source = [word(pronoun.english, "subject"), word(english.be(pronoun.person), "verb")]
    french = profession.feminine if pronoun.gender == "f" else profession.masculine
    if is_plural(pronoun.person):
        source.append(word(f"{profession.english}s", "noun"))
        french = f"{french}s"
    else:
        source.append(word(english.article(profession.english), maybe=["noun"]))
        source.append(word(profession.english, "noun"))
    return sentence(source, [*_with_subject(pronoun, BE), word(french, "noun")])


def _moods() -> list[SentencePair]:
    """`we are tired` → `nous sommes fatigués`."""
    pairs = []
    for pronoun in PRONOUNS:
        for mood in MOODS:
            source = [
                word(pronoun.english, "subject"),
                word(english.be(pronoun.person), "verb"),
                word(mood.english, "adjective"),
            ]
            french = _agreeing(mood, pronoun.gender, is_plural(pronoun.person))
            target = [*_with_subject(pronoun, BE), word(french, "adjective")]
            pairs.append(sentence(source, target))
    return pairs


def _things_with_colours() -> list[SentencePair]:
    """`the house is white` → `la maison est blanche`."""
    pairs = []
    for noun in [*ANIMALS, *THINGS]:
        for colour in COLOURS:
            source = [*_the(noun), word("is", "verb"), word(colour.english, "adjective")]
            target = [
                *_definite(noun),
                word("est", "verb"),
                word(_agreeing(colour, noun.gender), "adjective"),
            ]
            pairs.append(sentence(source, target))
    return pairs


def _objects() -> list[SentencePair]:
    """`she has an apple` → `elle a une pomme`."""
    pairs = []
    for pronoun in PRONOUNS:
        for verb in WITH_OBJECT:
            for noun in [*ANIMALS, *THINGS]:
                source = [
                    *_english_with_subject(pronoun, verb),
                    word(english.article(noun.english), "article"),
                    word(noun.english, "noun"),
                ]
                target = [
                    *_with_subject(pronoun, verb),
                    word(_indefinite(noun), "article"),
                    word(noun.french, "noun"),
                ]
                pairs.append(sentence(source, target))
    return pairs


def _coloured_objects() -> list[SentencePair]:
    """`I see a black cat` → `je vois un chat noir`: the adjective stands behind the noun."""
    pairs = []
    for pronoun in PRONOUNS:
        for verb in WITH_OBJECT:
            for noun in [*ANIMALS, *THINGS]:
                for colour in COLOURS:
                    source = [
                        *_english_with_subject(pronoun, verb),
                        word(english.article(colour.english), "article"),
                        word(colour.english, "adjective"),
                        word(noun.english, "noun"),
                    ]
                    target = [
                        *_with_subject(pronoun, verb),
                        word(_indefinite(noun), "article"),
                        word(noun.french, "noun"),
                        word(_agreeing(colour, noun.gender), "adjective"),
                    ]
                    pairs.append(sentence(source, target))
    return pairs


def _animals() -> list[SentencePair]:
    """`the white bird sleeps` → `l'oiseau blanc dort`."""
    pairs = []
    for noun in ANIMALS:
        for verb in WITHOUT_OBJECT:
            sleeps = word(english.present(verb.english, "3s"), "verb")
            dort = word(verb.french["3s"], "verb")
            pairs.append(sentence([*_the(noun), sleeps], [*_definite(noun), dort]))
            for colour in COLOURS:
                the, cat = _the(noun)
                black = word(colour.english, "adjective")
                noir = word(_agreeing(colour, noun.gender), "adjective")
                pairs.append(sentence([the, black, cat, sleeps], [*_definite(noun), noir, dort]))
    return pairs


def _clitics() -> list[SentencePair]:
    """`I love you` → `je t'aime`: the object stands before the verb."""
    pairs = []
    for pronoun in PRONOUNS:
        for other in PRONOUNS:
            if not _may_be_object(pronoun, other):
                continue
            for verb in WITH_CLITIC:
                source = [
                    *_english_with_subject(pronoun, verb),
                    word(other.english_object, "object"),
                ]
                pairs.append(sentence(source, _with_clitic(pronoun, other, verb)))
    return pairs


def _may_be_object(subject: Pronoun, other: Pronoun) -> bool:
    """Whether both may stand in one sentence: `I see us` and `you see you` say something else."""
    return subject.person[0] != other.person[0] or subject.person[0] == "3"


def _with_clitic(subject: Pronoun, other: Pronoun, verb: Verb) -> list[Word]:
    french = verb.french[subject.person]
    before = word(subject.french, "subject")
    if _elides(other.clitic, french):
        return [before, word(f"{other.clitic[0]}'{french}", "object", "verb")]
    return [before, word(other.clitic, "object"), word(french, "verb")]


def _english_with_subject(pronoun: Pronoun, verb: Verb) -> list[Word]:
    verb_form = english.present(verb.english, pronoun.person)
    return [word(pronoun.english, "subject"), word(verb_form, "verb")]


def _with_subject(pronoun: Pronoun, verb: Verb) -> list[Word]:
    """`je vois`, and `j'ai` as one word."""
    french = verb.french[pronoun.person]
    if _elides(pronoun.french, french):
        return [word(f"j'{french}", "subject", "verb")]
    return [word(pronoun.french, "subject"), word(french, "verb")]


def _elides(short: str, following: str) -> bool:
    """Whether a word such as `je` or `la` loses its vowel before the next one."""
    return short in ("je", "me", "te", "le", "la") and following[0] in VOWELS


def _the(noun: Noun) -> list[Word]:
    return [word("the", "article"), word(noun.english, "noun")]


def _definite(noun: Noun) -> list[Word]:
    """`le chat`, `la vache`, and `l'oiseau` as one word."""
    article = "la" if noun.gender == "f" else "le"
    if _elides(article, noun.french):
        return [word(f"l'{noun.french}", "article", "noun")]
    return [word(article, "article"), word(noun.french, "noun")]


def _indefinite(noun: Noun) -> str:
    return "une" if noun.gender == "f" else "un"


def _agreeing(adjective: Adjective, gender: Gender, plural: bool = False) -> str:
    """The form of an adjective; all that are many are masculine here."""
    if plural:
        return adjective.plural
    return adjective.feminine if gender == "f" else adjective.masculine
