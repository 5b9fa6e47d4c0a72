"""What stands in made articles and their summaries, and which of their words training has."""

import re

import pytest

from attnlab.data.articles import ArticlesCorpus
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.trainers import WordTrainer

REPORT = re.compile(r"On (\w+) , (\w+) 's (\w+) (\w+) (\d+) (\w+) \.")


def articles(**changed):
    values = {
        "num_pairs": 400,
        "min_length": 1,
        "max_length": 4,
        "test_min_length": None,
        "test_max_length": None,
        "num_names": 100,
        "num_places": 100,
        "num_figures": 100,
        "unseen": 1.0,
        "validation_fraction": 0.2,
        "test_fraction": 0.3,
        "seed": 1,
        "bleu_tokenize": "none",
        "rouge": "word",
        "tokenizer": WordTrainer(split="whitespace", min_frequency=20, joint=True),
    }
    return ArticlesCorpus(**(values | changed))


def rows_of(splits):
    return [row for rows in splits.values() for row in rows]


def inventory_of(rows):
    """The made-up words of some articles: names and places are capitalised, figures are digits."""
    words = {word for row in rows for word in row["source"].split()}
    weekdays = {word for word in words if word.endswith("day")}
    made_up = {word for word in words if word[0].isupper() or word.isdigit()}
    return made_up - weekdays - {"On", "It", "The"}


def test_summary_copies_from_the_one_sentence_that_reports():
    for row in rows_of(articles().load()):
        ((_, place, name, verb, figure, goods),) = REPORT.findall(row["source"])
        assert row["target"] == f"{name} of {place} {verb} {figure} {goods} ."


def test_articles_align_the_copied_words_with_the_sentence_that_reports():
    for row in rows_of(articles().load()):
        report = REPORT.search(row["source"])
        assert report is not None
        expected = {report.span(group) for group in range(2, 7)}
        assert {tuple(span) for span in row["source_spans"]} == expected
        for (start, end), (from_, to) in zip(row["source_spans"], row["target_spans"], strict=True):
            assert row["source"][start:end] == row["target"][from_:to]


def test_report_stands_at_any_place_among_the_other_sentences():
    places = set()
    for row in rows_of(articles(min_length=4).load()):
        before = row["source"][: REPORT.search(row["source"]).start()]
        places.add(before.split().count("."))
    assert places == {0, 1, 2, 3}


def test_unseen_words_of_validation_and_test_are_not_in_training():
    splits = articles().load()
    train, validation, test = (inventory_of(splits[split]) for split in splits)
    assert not train & validation
    assert not train & test
    assert not validation & test
    assert min(map(len, (train, validation, test))) > 100


def test_share_of_unseen_words_is_as_wanted():
    splits = articles(unseen=0.3).load()
    known = inventory_of(splits["train"])
    names = [REPORT.search(source)[3] for source in splits["test"]["source"]]
    unseen = sum(name not in known for name in names) / len(names)
    assert unseen == pytest.approx(0.3, abs=0.12)


def test_articles_without_unseen_words_have_those_of_training():
    splits = articles(unseen=0.0, num_names=5, num_places=5, num_figures=5).load()
    known = inventory_of(splits["train"])
    assert len(known) == 15
    assert inventory_of(splits["test"]) <= known


def test_copied_words_are_numbered_unknown_words_in_training_and_test(tmp_path):
    numbered = WordTrainer(split="whitespace", min_frequency=20, joint=True, numbered_unknown=10)
    prepare(articles(tokenizer=numbered), Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    for split in ("train", "test"):
        rows = data.split(split)
        tokens = data.target_tokenizer.tokens(rows.target[0].tolist())
        name, of, place, verb, figure, goods, stop = tokens
        assert (of, stop) == ("of", ".")
        assert all(re.fullmatch(r"<unk:\d+>", token) for token in (name, place, figure))
        words = data.source_tokenizer.numbered_words([rows.source_text(0)])
        read = data.target_tokenizer.decode(rows.target[0].tolist(), numbered=words[0])
        assert read == rows.target_text(0)
        assert {verb, goods} <= set(rows.target_text(0).split())
