"""Every corpus whose pairs are drawn: splits, lengths, seeds, and what is refused."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from attnlab.config.binding import bind
from attnlab.data.corpus import Corpus
from attnlab.data.drawn import DrawnCorpus, row_of_words
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.errors import ExperimentError
from attnlab.project import CONF

# {choice: (overrides that leave it few different sources, the length of a source)}
DRAWN: dict[str, tuple[dict[str, Any], Callable[[str], int]]] = {
    "mqar": (
        {"num_keys": 2, "num_values": 2, "min_length": 1, "max_length": 2},
        lambda source: len(source.partition(" | ")[0].split()) // 2,
    ),
    "tracked_recall": (
        {"num_keys": 2, "num_values": 2, "min_length": 1, "max_length": 2},
        lambda source: len(source.partition(" | ")[2].split()),
    ),
    "flip_flop": (
        {"min_length": 2, "max_length": 3},
        lambda source: sum(word in "wir" for word in source.split()),
    ),
    "parity": ({"min_length": 1, "max_length": 3}, lambda source: len(source.split())),
    "modular_arithmetic": (
        {"modulus": 2, "min_length": 1, "max_length": 2},
        lambda source: (len(source.split()) + 1) // 2,
    ),
    "articles": (
        {
            "num_pairs": 400, "min_length": 1, "max_length": 1,
            "num_names": 1, "num_places": 1, "num_figures": 1, "unseen": 0,
        },
        lambda source: source.split().count("."),
    ),
}  # fmt: skip
# Not all words of the others are linked.
ALL_LINKED = [name for name in DRAWN if name not in ("articles", "tracked_recall")]
SMALL = {"num_pairs": 300, "test_fraction": 0.2}


@functools.cache
def composed(name: str) -> dict[str, Any]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", [f"data={name}"])
    return OmegaConf.to_container(config.data, resolve=True)


def corpus(name: str, **changed: Any) -> DrawnCorpus:
    return bind(composed(name) | SMALL | changed, Corpus, "data")


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_corpus_splits_share_no_source(name):
    splits = corpus(name).load()
    assert {split: len(rows) for split, rows in splits.items()} == {
        "train": 210, "validation": 30, "test": 60,
    }  # fmt: skip
    sources = [source for rows in splits.values() for source in rows["source"]]
    assert len(set(sources)) == 300


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_corpus_depends_on_its_seed_alone(name):
    first = corpus(name, seed=1).load()
    for split, rows in corpus(name, seed=1).load().items():
        assert rows.to_list() == first[split].to_list()
    assert corpus(name, seed=2).load()["test"]["source"] != first["test"]["source"]


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_corpus_test_lengths_can_differ(name):
    length_of = DRAWN[name][1]
    lengths = {"min_length": 6, "max_length": 8, "test_min_length": 10, "test_max_length": 12}
    splits = corpus(name, **lengths).load()
    found = {split: {*map(length_of, rows["source"])} for split, rows in splits.items()}
    assert found == {"train": {6, 7, 8}, "validation": {6, 7, 8}, "test": {10, 11, 12}}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_corpus_with_too_few_sources_is_refused_in_a_sentence(name):
    with pytest.raises(ExperimentError, match="too few different sources") as error:
        corpus(name, **DRAWN[name][0]).load()
    (sentence,) = error.value.problems
    assert sentence.startswith("data.num_pairs: ")


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_corpus_with_impossible_lengths_is_refused(name):
    with pytest.raises(ExperimentError, match="min_length must be at most max_length"):
        corpus(name, min_length=7, max_length=6)
    with pytest.raises(ExperimentError, match="test_min_length must be at most test_max_length"):
        corpus(name, test_min_length=7, test_max_length=6)


@pytest.mark.parametrize("name", ALL_LINKED)
def test_drawn_corpus_is_prepared_with_its_links(name, tmp_path):
    prepare(corpus(name), Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    rows = data.split("test")
    # Each word is one token, and so is each aligned field: every link is sure.
    for row in range(len(rows)):
        sure = rows.links("sure", row).tolist()
        assert sure == rows.links("possible", row).tolist()
        assert [target for target, _ in sure] == list(range(len(rows.target[row])))


def test_drawn_corpus_can_use_every_source():
    drawn = corpus("parity", min_length=1, max_length=3, num_pairs=14).load()
    assert len({source for rows in drawn.values() for source in rows["source"]}) == 14


def test_row_of_words_has_the_characters_of_linked_words():
    row = row_of_words(["a", "bcd"], ["x", "yz", "w"], [(1, 0), (0, 2), (1, 1)])
    assert (row["source"], row["target"]) == ("a bcd", "x yz w")
    assert row["source_spans"] == [[2, 5], [0, 1], [2, 5]]
    assert row["target_spans"] == [[0, 1], [5, 6], [2, 4]]
