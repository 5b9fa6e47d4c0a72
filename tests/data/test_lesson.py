"""The lessons' corpora: grammar of every sentence, gold links, splits.

The tables of genders and endings here are written anew, from dictionaries and not from the code.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from attnlab.data.grammars import english_french, german_english, korean, korean_english, reviews
from attnlab.data.grammars.sentence import SentencePair, sentence, word
from attnlab.data.lesson import LessonCorpus
from attnlab.data.lesson_reviews import LessonReviews
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError

MODULES = {"en-fr": english_french, "de-en": german_english, "ko-en": korean_english}
LECTURES = {
    "en-fr": ("I am a student", "je suis étudiant"),
    "de-en": ("Ich möchte ein Bier", "I'd like a beer"),
    "ko-en": ("저는 학생입니다", "I am a student"),
}


def all_pairs(languages: str) -> list[SentencePair]:
    grammar = MODULES[languages].grammar()
    return [pair for pattern in [*grammar.patterns, grammar.handful] for pair in pattern]


@pytest.fixture
def lesson() -> Callable[..., LessonCorpus]:
    def make(languages: str, **changed: Any) -> LessonCorpus:
        values: dict[str, Any] = {
            "languages": languages,
            "handful": False,
            "num_pairs": 900,
            "validation_fraction": 0.1,
            "test_fraction": 0.1,
            "seed": 1,
            "bleu_tokenize": "13a",
            "tokenizer": WordTrainer(split="whitespace", min_frequency=1),
            "source_tokenizer": WordTrainer(split="whitespace", lowercase=True, min_frequency=1),
        }
        return LessonCorpus(**(values | changed))

    return make


def texts(dataset: Any) -> list[tuple[str, str]]:
    return list(zip(dataset["source"], dataset["target"], strict=True))


@pytest.mark.parametrize("languages", MODULES)
def test_lesson_samples_are_printed_for_a_reader(languages: str) -> None:
    """`pytest -rP tests/data/test_lesson.py -k samples` shows some of each pattern."""
    for pattern in MODULES[languages].grammar().patterns:
        for pair in pattern[:: max(1, len(pattern) // 4)]:
            print(pair.source_text, "→", pair.target_text, "  ", pair.links)
            assert pair.source_text
            assert pair.target_text


@pytest.mark.parametrize("languages", MODULES)
def test_lesson_sentence_is_a_single_line_of_composed_characters(languages: str) -> None:
    for pair in all_pairs(languages):
        for text in (pair.source_text, pair.target_text):
            assert text == unicodedata.normalize("NFC", text)
            assert text == " ".join(text.split())
            assert text[-1] not in ".!?,"


def test_decomposed_text_is_read_as_the_sentence_of_a_lesson() -> None:
    korean, french = "저는 학생입니다", "je suis étudiant"
    for text in (korean, french):
        decomposed = unicodedata.normalize("NFD", text)
        assert decomposed != text
        assert LessonCorpus.cleaning.tidy(decomposed) == text
        assert LessonReviews.cleaning.tidy(decomposed) == text


# English


def english_sides() -> list[str]:
    return [
        *(pair.source_text for pair in all_pairs("en-fr")),
        *(pair.target_text for pair in all_pairs("de-en")),
        *(pair.target_text for pair in all_pairs("ko-en")),
    ]


def test_english_article_fits_the_sound_of_the_next_word() -> None:
    # Of all words that stand behind an article, those that begin with a vowel's sound.
    with_vowel = {
        "artist", "engineer", "actor", "apple", "orange", "egg", "ice", "umbrella", "old",
    }  # fmt: skip
    found = {"a": set(), "an": set()}
    for text in english_sides():
        for article, following in itertools.pairwise(text.split()):
            if article in found:
                found[article].add(following)
    assert found["an"] == with_vowel
    assert not found["a"] & with_vowel
    assert all(following[0] not in "aeiou" for following in found["a"])


def test_english_verb_agrees_with_its_subject() -> None:
    third = {
        "is", "has", "sees", "wants", "draws", "buys", "sleeps", "eats", "waits", "runs", "loves",
        "hears", "knows", "drinks", "reads", "writes", "watches",
    }  # fmt: skip
    other = {
        "am", "are", "have", "see", "want", "draw", "buy", "love", "hear", "know", "drink", "eat",
        "read", "write", "watch",
    }  # fmt: skip
    either = {"can", "must", "drank", "ate", "bought", "wrote"}
    counted = 0
    for text in english_sides():
        first, verb = text.split()[:2]
        if "'" in first or first.lower() in ("the", "this", "my"):
            continue
        counted += 1
        past = "yesterday" in text
        is_third = first.lower() in ("he", "she", "minsu", "jimin") and not past
        assert verb in either or verb in (third if is_third else other), text
        if verb in ("am", "are"):
            assert (verb == "am") == (first == "I"), text
    assert counted > 1000


# French

FRENCH_GENDERS = {
    "chat": "m", "chien": "m", "oiseau": "m", "vache": "f", "souris": "f", "livre": "m",
    "parapluie": "m", "voiture": "f", "maison": "f", "fleur": "f", "pomme": "f",
}  # fmt: skip
FRENCH_COLOURS = {
    "noir": "m", "noire": "f", "blanc": "m", "blanche": "f", "vert": "m", "verte": "f",
    "bleu": "m", "bleue": "f", "rouge": "mf",
}  # fmt: skip
# Masculine, feminine and masculine plural of all that may follow `être` or name a profession.
FRENCH_FORMS = [
    ("étudiant", "étudiante", "étudiants"), ("médecin", "médecin", "médecins"),
    ("chanteur", "chanteuse", "chanteurs"), ("artiste", "artiste", "artistes"),
    ("avocat", "avocate", "avocats"), ("ingénieur", "ingénieure", "ingénieurs"),
    ("musicien", "musicienne", "musiciens"), ("boulanger", "boulangère", "boulangers"),
    ("infirmier", "infirmière", "infirmiers"), ("agriculteur", "agricultrice", "agriculteurs"),
    ("fatigué", "fatiguée", "fatigués"), ("heureux", "heureuse", "heureux"),
    ("triste", "triste", "tristes"), ("prêt", "prête", "prêts"), ("grand", "grande", "grands"),
    ("jeune", "jeune", "jeunes"),
]  # fmt: skip


def french_words(pair: SentencePair) -> list[str]:
    """The words, with elided ones apart: `l'`, `oiseau`."""
    return pair.target_text.replace("'", "' ").split()


def test_french_article_and_adjective_agree_with_the_noun() -> None:
    seen = set()
    for pair in all_pairs("en-fr"):
        words = french_words(pair)
        nouns = [i for i, each in enumerate(words) if each in FRENCH_GENDERS]
        for i in nouns:
            gender = FRENCH_GENDERS[words[i]]
            seen.add(words[i])
            assert words[i - 1] in {"m": ("un", "le", "l'"), "f": ("une", "la")}[gender], pair
        colours = [each for each in words if each in FRENCH_COLOURS]
        for colour in colours:
            (noun,) = nouns
            assert FRENCH_GENDERS[words[noun]] in FRENCH_COLOURS[colour], pair
            # The colour stands right behind its noun, or behind `est`.
            assert words.index(colour) - noun in (1, 2), pair
    assert seen == set(FRENCH_GENDERS)


def test_french_predicate_agrees_with_the_subject() -> None:
    columns = {"je": 0, "tu": 0, "il": 0, "elle": 1, "nous": 2, "ils": 2}
    verbs = {"je": "suis", "tu": "es", "il": "est", "elle": "est", "nous": "sommes", "ils": "sont"}
    seen = set()
    for pair in all_pairs("en-fr"):
        words = french_words(pair)
        if len(words) == 3 and words[1] in verbs.values() and words[0] in verbs:
            assert words[1] == verbs[words[0]], pair
            assert words[2] in {forms[columns[words[0]]] for forms in FRENCH_FORMS}, pair
            seen.add(words[2])
    assert seen == {form for forms in FRENCH_FORMS for form in forms}


def test_french_elides_before_every_vowel_and_nowhere_else() -> None:
    elided = 0
    for pair in all_pairs("en-fr"):
        for first, following in itertools.pairwise(french_words(pair)):
            base = unicodedata.normalize("NFD", following)[0]
            if first in ("je", "me", "te", "le", "la"):
                assert base not in "aeiou", pair
            if first.endswith("'"):
                elided += 1
                assert first in ("j'", "m'", "t'", "l'"), pair
                assert base in "aeiou", pair
    assert elided > 100


def test_french_clitic_stands_before_the_verb_and_is_of_the_right_person() -> None:
    clitics = {
        "me": {"me", "m'"}, "you": {"te", "t'"}, "him": {"le", "l'"}, "her": {"la", "l'"},
        "us": {"nous"}, "them": {"les"},
    }  # fmt: skip
    found = 0
    for pair in all_pairs("en-fr"):
        *_, last = pair.source_text.split()
        if last in clitics:
            found += 1
            subject, clitic, _verb = french_words(pair)
            assert clitic in clitics[last], pair
            assert subject in ("je", "tu", "il", "elle", "nous", "ils")
    assert found == 124
    texts = {pair.source_text: pair.target_text for pair in all_pairs("en-fr")}
    assert texts["I love you"] == "je t'aime"
    assert texts["She sees us"] == "elle nous voit"


# German

GERMAN_GENDERS = {
    "Bier": "n", "Kaffee": "m", "Tee": "m", "Limonade": "f", "Apfel": "m", "Suppe": "f",
    "Eis": "n", "Banane": "f", "Orange": "f", "Ei": "n", "Kuchen": "m", "Buch": "n",
    "Brief": "m", "Zeitung": "f", "Gedicht": "n", "Auto": "n", "Hut": "m", "Lampe": "f",
    "Uhr": "f", "Regenschirm": "m",
}  # fmt: skip
GERMAN_CONJUGATION = {
    "ich": {
        "möchte", "will", "kann", "muss", "habe", "trinke", "esse", "kaufe", "lese", "schreibe"
    },
    "du": {
        "möchtest", "willst", "kannst", "musst", "hast", "trinkst", "isst", "kaufst", "liest",
        "schreibst",
    },
    "er": {
        "möchte", "will", "kann", "muss", "hat", "trinkt", "isst", "kauft", "liest", "schreibt"
    },
    "wir": {
        "möchten", "wollen", "können", "müssen", "haben", "trinken", "essen", "kaufen", "lesen",
        "schreiben",
    },
}  # fmt: skip
GERMAN_CONJUGATION["sie"] = GERMAN_CONJUGATION["er"]
INFINITIVES = {"trinken", "essen", "kaufen", "lesen", "schreiben"}
PARTICIPLES = {"getrunken", "gegessen", "gekauft", "gelesen", "geschrieben"}


def test_german_article_and_adjective_have_the_accusative_of_their_noun() -> None:
    seen = set()
    for pair in all_pairs("de-en"):
        words = pair.source_text.split()
        (i,) = [i for i, each in enumerate(words) if each in GERMAN_GENDERS]
        gender = GERMAN_GENDERS[words[i]]
        seen.add(words[i])
        adjective = words[i - 1] if not words[i - 1].startswith("ein") else None
        article = words[i - 1] if adjective is None else words[i - 2]
        assert article == {"m": "einen", "f": "eine", "n": "ein"}[gender], pair
        if adjective is not None:
            stem = {"m": "en", "f": "e", "n": "es"}[gender]
            assert adjective[: -len(stem)] in ("alt", "neu", "klein", "rot", "blau"), pair
            assert adjective.endswith(stem), pair
    assert seen == set(GERMAN_GENDERS)


def test_german_finite_verb_is_in_second_place_and_agrees_with_the_subject() -> None:
    for pair in all_pairs("de-en"):
        words = [each.text for each in pair.source]
        subject = words[2] if words[0] in ("morgen", "heute", "gestern") else words[0]
        assert words[1] in GERMAN_CONJUGATION[subject], pair


def test_german_infinitive_and_participle_stand_at_the_end() -> None:
    modals = {"möchte", "will", "kann", "muss"}
    stems = {"möchte": "möcht", "will": "w", "kann": "k", "muss": "m"}
    with_infinitive = with_participle = 0
    for pair in all_pairs("de-en"):
        words = [each.text for each in pair.source]
        if words[0] == "gestern":
            with_participle += 1
            assert words[-1] in PARTICIPLES, pair
        elif words[-1] in INFINITIVES:
            with_infinitive += 1
            assert any(words[1].startswith(stems[each]) for each in modals), pair
            assert not PARTICIPLES & {*words}
    assert (with_infinitive, with_participle) == (500, 125)


# Korean


def ends_in_consonant(syllable: str) -> bool:
    """By the letters that the syllable decomposes into: three where it has a final consonant."""
    return len(unicodedata.normalize("NFD", syllable)) == 3


@pytest.mark.parametrize(
    ("function", "with_vowel", "with_consonant"),
    [
        (korean.topic, "저는", "지민은"),
        (korean.subject, "커피가", "물이"),
        (korean.object_, "커피를", "물을"),
    ],
)
def test_korean_particle_follows_the_final_consonant(
    function: Callable[[str], str], with_vowel: str, with_consonant: str
) -> None:
    assert function(with_vowel[:-1]) == with_vowel
    assert function(with_consonant[:-1]) == with_consonant


def test_korean_particle_of_a_latin_word_is_refused() -> None:
    with pytest.raises(ValueError, match="'Tom' does not end in a Hangul syllable"):
        korean.topic("Tom")


def test_korean_particles_agree_with_their_nouns_in_every_sentence() -> None:
    particles = {"은": True, "는": False, "이": True, "가": False, "을": True, "를": False}
    # Words that only look as if they had a particle.
    others = {"이", "작은", "빨간", "큰"}
    seen = set()
    for pair in all_pairs("ko-en"):
        for each in pair.source_text.split():
            last = each[-1]
            if last in particles and each not in others:
                seen.add(last)
                assert ends_in_consonant(each[-2]) == particles[last], pair
    assert seen == set(particles)


def test_korean_sentence_ends_with_its_polite_verb() -> None:
    for pair in all_pairs("ko-en"):
        assert pair.source_text.endswith("니다"), pair
        if "want" in pair.target_text:
            is_first = pair.target_text.split()[0] in ("I", "we")
            assert pair.source_text.endswith("고 싶습니다" if is_first else "고 싶어 합니다"), pair


# Links


def test_links_join_words_that_share_a_meaning() -> None:
    pair = sentence(
        [
            word("habe", maybe=["verb"]),
            word("gelesen", "verb"),
            word("l'oiseau", "article", "noun"),
        ],
        [word("bird", "noun"), word("read", "verb")],
    )
    assert pair.links == "0?1 1-1 2-0"


@pytest.mark.parametrize(
    ("languages", "source", "links"),
    [
        ("en-fr", "I am a student", {("I", "je"), ("am", "suis"), ("student", "étudiant")}),
        (
            "en-fr",
            "I have a black cat",
            {("I", "j'ai"), ("have", "j'ai"), ("a", "un"), ("black", "noir"), ("cat", "chat")},
        ),
        ("en-fr", "I love you", {("I", "je"), ("love", "t'aime"), ("you", "t'aime")}),
        (
            "de-en",
            "Ich möchte ein Bier",
            {("ich", "I'd"), ("möchte", "like"), ("ein", "a"), ("Bier", "beer")},
        ),
        (
            "de-en",
            "Gestern habe ich einen Apfel gegessen",
            {
                ("gestern", "yesterday"), ("ich", "I"), ("einen", "an"), ("Apfel", "apple"),
                ("gegessen", "ate"),
            },
        ),
        (
            "ko-en",
            "저는 집에서 책을 읽습니다",
            {
                ("저는", "I"), ("집에서", "at"), ("집에서", "home"), ("책을", "book"),
                ("읽습니다", "read"),
            },
        ),
    ],
)  # fmt: skip
def test_sure_links_join_the_right_words(
    languages: str, source: str, links: set[tuple[str, str]]
) -> None:
    pair = next(pair for pair in all_pairs(languages) if pair.source_text == source)
    sure = [link.split("-") for link in pair.links.split() if "-" in link]
    assert {(pair.source[int(s)].text, pair.target[int(t)].text) for s, t in sure} == links


@pytest.mark.parametrize("languages", MODULES)
def test_every_word_has_a_link(languages: str) -> None:
    for pair in all_pairs(languages):
        ends = [link.replace("?", "-").split("-") for link in pair.links.split()]
        assert {int(source) for source, _ in ends} == set(range(len(pair.source))), pair
        assert {int(target) for _, target in ends} == set(range(len(pair.target))), pair


def test_order_of_words_differs_in_many_sentences() -> None:
    for languages in MODULES:
        pairs = all_pairs(languages)
        crossing = 0
        for pair in pairs:
            sure = [tuple(map(int, link.split("-"))) for link in pair.links.split() if "-" in link]
            crossing += any(
                (s - other_s) * (t - other_t) < 0
                for (s, t), (other_s, other_t) in itertools.combinations(sure, 2)
            )
        assert crossing / len(pairs) > 0.5, languages


# Corpus


@pytest.mark.parametrize("languages", MODULES)
def test_lesson_splits_share_the_lectures_sentence_alone(
    languages: str, lesson: Callable[..., LessonCorpus]
) -> None:
    splits = lesson(languages).load()
    assert [len(splits[name]) for name in ("train", "validation", "test")] == [720, 90, 90]
    train, validation, test = (texts(splits[name]) for name in ("train", "validation", "test"))
    assert train[0] == test[0] == LECTURES[languages]
    assert {*train} & {*test} == {LECTURES[languages]}
    assert not {*train} & {*validation}
    assert not {*test} & {*validation}
    for pairs in (train, validation, test):
        assert len({*pairs}) == len(pairs)


@pytest.mark.parametrize("languages", MODULES)
def test_lesson_training_shows_every_word_and_every_pattern(
    languages: str, lesson: Callable[..., LessonCorpus]
) -> None:
    splits = lesson(languages, num_pairs=300).load()
    train = texts(splits["train"])
    sources = {each for source, _ in train for each in source.lower().split()}
    targets = {each for _, target in train for each in target.split()}
    for name in ("validation", "test"):
        for source, target in texts(splits[name]):
            assert {*source.lower().split()} <= sources
            assert {*target.split()} <= targets
    for pattern in MODULES[languages].grammar().patterns:
        assert {(pair.source_text, pair.target_text) for pair in pattern} & {*train}


def test_lesson_depends_on_its_seed_alone(lesson: Callable[..., LessonCorpus]) -> None:
    first = lesson("ko-en").load()
    again = lesson("ko-en").load()
    other = lesson("ko-en", seed=2).load()
    for split in ("train", "validation", "test"):
        assert first[split].to_list() == again[split].to_list()
        assert first[split].to_list() != other[split].to_list()


@pytest.mark.parametrize("languages", MODULES)
def test_lesson_handful_is_the_same_in_every_split(
    languages: str, lesson: Callable[..., LessonCorpus]
) -> None:
    splits = lesson(languages, handful=True).load()
    pairs = texts(splits["train"])
    assert pairs[0] == LECTURES[languages]
    assert len({*pairs}) == len(pairs) == 16
    assert texts(splits["validation"]) == texts(splits["test"]) == pairs


def test_lesson_with_more_pairs_than_sentences_is_refused(
    lesson: Callable[..., LessonCorpus],
) -> None:
    assert len(lesson("ko-en", num_pairs=1054).load()["train"]) == 1054 - 2 * 105
    with pytest.raises(
        ExperimentError, match="ko-en has 1053 different sentences; choose at most 1054"
    ):
        lesson("ko-en", num_pairs=1055).load()


def test_lesson_with_too_few_pairs_to_show_each_word_is_refused(
    lesson: Callable[..., LessonCorpus],
) -> None:
    with pytest.raises(ExperimentError, match="needed to show each word"):
        lesson("de-en", num_pairs=20).load()


def test_prepared_lesson_has_a_token_for_each_word_and_the_links_of_the_grammar(
    lesson: Callable[..., LessonCorpus], tmp_path: Any
) -> None:
    prepare(lesson("de-en"), Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    split = data.split("test")
    assert data.source_tokenizer.tokens(split.source[0]) == ["ich", "möchte", "ein", "bier"]
    assert data.target_tokenizer.tokens(split.target[0]) == ["I'd", "like", "a", "beer"]
    assert split.links("sure", 0).tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert [0, 1] in split.links("possible", 0).tolist()


# Reviews


@pytest.fixture
def film_reviews() -> Callable[..., LessonReviews]:
    def make(language: str, **changed: Any) -> LessonReviews:
        values: dict[str, Any] = {
            "language": language,
            "num_sentences": 600,
            "validation_fraction": 0.1,
            "test_fraction": 0.1,
            "seed": 1,
            "tokenizer": WordTrainer(split="whitespace", lowercase=True, min_frequency=1),
        }
        return LessonReviews(**(values | changed))

    return make


def test_review_label_is_that_of_its_opinion_or_of_its_denial() -> None:
    bad = {"bad", "boring", "silly", "weak", "dull"}
    for review in reviews.english():
        words = review.text.split()
        is_negative = (words[-1] in bad) != (words[-2] == "not")
        assert review.label == ("negative" if is_negative else "positive"), review
    bad = {"나쁘", "나빴", "지루", "유치", "어색", "실망"}
    for review in reviews.korean_reviews():
        said = review.text.replace(" 않았습니다", "").split()[-1]
        is_negative = (said[:2] in bad) != ("않았습니다" in review.text)
        assert review.label == ("negative" if is_negative else "positive"), review


@pytest.mark.parametrize("language", ["en", "ko"])
def test_reviews_occur_once_and_depend_on_the_seed_alone(
    language: str, film_reviews: Callable[..., LessonReviews]
) -> None:
    splits = film_reviews(language).load()
    assert [len(splits[name]) for name in ("train", "validation", "test")] == [480, 60, 60]
    everything = [text for split in splits.values() for text in split["text"]]
    assert len({*everything}) == 600
    for split in splits.values():
        share = split["label"].count("positive") / len(split)
        assert 0.3 < share < 0.7
    assert splits["test"].to_list() == film_reviews(language).load()["test"].to_list()
    assert splits["test"].to_list() != film_reviews(language, seed=2).load()["test"].to_list()


def test_more_reviews_than_there_are_are_refused(
    film_reviews: Callable[..., LessonReviews],
) -> None:
    with pytest.raises(ExperimentError, match=r"data.num_sentences: the grammar has 800"):
        film_reviews("en", num_sentences=801).load()
