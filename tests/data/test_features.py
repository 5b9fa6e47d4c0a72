"""Columns of features before the source, and the tokenizer that reads each of them as a token."""

import json
from pathlib import Path

import pytest

from attnlab import compose
from attnlab.data.corpus import FAULT
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.tokenizer import Tokenizer
from attnlab.data.trainers import TaggedCharacterTrainer, WordTrainer
from attnlab.errors import ExperimentError

ROWS = [
    {"lemma": "gehen", "tags": "pos=V num={DU/PL}", "form": "ging", "lang": "de"},
    {"lemma": "to go", "tags": "pos=V", "form": "went", "lang": "en"},
    {"lemma": "ab", "tags": None, "form": "ab", "lang": "de"},
]


def write(folder: Path, rows=ROWS) -> None:
    folder.mkdir(parents=True)
    for split in ("train", "validation", "test"):
        lines = [json.dumps(row) + "\n" for row in rows]
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")


def sources(hub_corpus, folder: Path, **changed) -> list[str]:
    splits = hub_corpus(folder, source="lemma", target="form", **changed).load()
    return list(splits["test"]["source"])


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "corpus")
    return tmp_path / "corpus"


def test_features_stand_before_the_source_in_the_order_of_their_columns(hub_corpus, folder):
    assert sources(hub_corpus, folder, features=["tags"]) == [
        "<pos=V> <num={DU/PL}> gehen",
        "<pos=V> to go",
        "ab",
    ]
    assert sources(hub_corpus, folder, features=["lang", "tags"]) == [
        "<de> <pos=V> <num={DU/PL}> gehen",
        "<en> <pos=V> to go",
        "<de> ab",
    ]


def test_row_without_a_source_stays_without_one_though_it_has_features(hub_corpus, tmp_path):
    write(tmp_path / "blank", [{"lemma": "  ", "tags": "pos=V", "form": "x", "lang": "de"}, *ROWS])
    prepare(
        hub_corpus(tmp_path / "blank", source="lemma", target="form", features=["tags"]),
        Pairs,
        tmp_path / "data",
    )
    dropped = PreparedData(tmp_path / "data").stats["splits"]["test"]["dropped"]
    assert dropped == {"empty": 1}


def test_corpus_without_features_has_the_source_alone(hub_corpus, folder):
    assert sources(hub_corpus, folder) == ["gehen", "to go", "ab"]


def test_missing_feature_column_is_refused_by_its_setting(hub_corpus, folder):
    with pytest.raises(ExperimentError, match=r"data.features\[1\]: there is no column 'tagz'"):
        sources(hub_corpus, folder, features=["tags", "tagz"])


def test_features_beside_word_links_are_refused(hub_corpus, folder):
    with pytest.raises(ValueError, match=r"features .* alignments count; .*features=\['tags'\]"):
        sources(hub_corpus, folder, features=["tags"], alignments="links")
    with pytest.raises(ValueError, match=r"features .* and alignments='maybe'"):
        sources(hub_corpus, folder, features=["tags"], possible_alignments="maybe")


@pytest.mark.parametrize("cell", ["pos=V <x", "x>"])
def test_row_whose_feature_has_a_mark_is_dropped_and_counted(hub_corpus, tmp_path, cell):
    write(tmp_path / "odd", [*ROWS, {"lemma": "x", "tags": cell, "form": "y"}])
    corpus = hub_corpus(tmp_path / "odd", source="lemma", target="form", features=["tags"])
    assert "'tags' has " in corpus.load()["train"][FAULT][-1]
    prepare(corpus, Pairs, tmp_path / "data")
    stats = PreparedData(tmp_path / "data").stats["splits"]["train"]["dropped"]
    assert stats == {"not_text": 1}


def test_row_without_a_source_is_dropped_in_spite_of_its_features(hub_corpus, tmp_path):
    write(tmp_path / "odd", [*ROWS, {"lemma": None, "tags": "pos=V", "form": "y"}])
    assert sources(hub_corpus, tmp_path / "odd", features=["tags"])[-1] is None


TEXTS = ["<pos=V> <num={DU/PL}>  läuft", "<pos=N>a b"]


def test_tagged_characters_keep_tags_whole_and_leave_out_the_space_behind_them(tmp_path):
    tokenizer = TaggedCharacterTrainer().train(TEXTS)
    ids = tokenizer.encode_ids([*TEXTS, "a <pos=N> a"])
    read = [tokenizer.tokens(row) for row in ids]
    assert read == [
        ["<pos=V>", "<num={DU/PL}>", *"läuft"],
        ["<pos=N>", "a", "␣", "b"],
        ["a", "␣", "<pos=N>", "a"],
    ]
    assert tokenizer.decode(ids[0]) == "<pos=V><num={DU/PL}>läuft"
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").encode_ids(TEXTS) == ids[:2]


def test_tagged_characters_read_an_open_bracket_as_a_character():
    tokenizer = TaggedCharacterTrainer().train(["a < b > c", "x<y z>"])
    (ids,) = tokenizer.encode_ids(["a < b > c"])
    assert tokenizer.tokens(ids) == ["a", "␣", "<", "␣", "b", "␣", ">", "␣", "c"]
    assert tokenizer.decode(ids) == "a < b > c"


def test_tagged_characters_know_no_tag_that_training_lacks():
    tokenizer = TaggedCharacterTrainer().train(TEXTS)
    (ids,) = tokenizer.encode_ids(["<pos=X> läuft <eos>"])
    assert tokenizer.tokens(ids) == ["<unk>", *"läuft", "␣", "<unk>"]


def test_words_between_white_space_read_a_feature_as_one_token():
    tokenizer = WordTrainer(split="whitespace", min_frequency=1).train(["<de> <pos=V> gehen"])
    (ids,) = tokenizer.encode_ids(["<de> <pos=V> gehen"])
    assert tokenizer.tokens(ids) == ["<de>", "<pos=V>", "gehen"]


def test_sigmorphon2016_reads_tags_and_characters_and_writes_characters(tmp_path):
    write(tmp_path / "sigmorphon2016_fin")
    corpus = compose(["data=sigmorphon2016", f"data.path={tmp_path}"]).data
    prepare(corpus, Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    split = data.split("test")
    assert data.source_tokenizer.tokens(split.source[0].tolist()) == [
        "<pos=V>",
        "<num={DU/PL}>",
        *"gehen",
    ]
    assert data.target_tokenizer.decode(split.target[0].tolist()) == "ging"
    assert not data.info.joint


def test_cogs_tests_the_split_that_is_chosen(tmp_path):
    rows = [{"sentence": f"{word} slept .", "form": f"sleep ( {word} )"} for word in "abc"]
    write(tmp_path / "cogs", rows)
    lines = json.dumps({"sentence": "d slept .", "form": "sleep ( d )"})
    (tmp_path / "cogs" / "generalization.jsonl").write_text(lines, encoding="utf-8")
    usual = compose(["data=cogs", f"data.path={tmp_path / 'cogs'}"]).data
    assert len(usual.load()["test"]) == 3
    assert any("ignored generalization.jsonl" in note for note in usual.notes)
    chosen = ["data=cogs", f"data.path={tmp_path / 'cogs'}", "data.splits.test=generalization"]
    assert list(compose(chosen).data.load()["test"]["source"]) == ["d slept ."]
