import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from attnlab.batch import UNK
from attnlab.data.corpus import Cleaning
from attnlab.data.prepare import prepare
from attnlab.data.prepared import LabelledData, PreparedData
from attnlab.data.row_kinds import Pairs, links_between
from attnlab.data.statistics import remarks
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, WordTrainer
from attnlab.errors import ExperimentError


def write_rows(folder, train, validation=None, test=None):
    folder.mkdir()
    good = [{"de": "gut", "en": "good"}]
    for split, rows in (
        ("train", train),
        ("validation", validation or good),
        ("test", test or good),
    ):
        lines = [json.dumps(row) + "\n" for row in rows]
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def prepared(corpus, folder):
    prepare(corpus, Pairs, folder / "data")
    return PreparedData(folder / "data")


def test_prepared_folder_reads_back_as_the_corpus(hub_folder, hub_corpus, tmp_path):
    prepare(hub_corpus(hub_folder), Pairs, tmp_path / "data")
    assert sorted(os.listdir(tmp_path / "data")) == PreparedData.files()
    data = PreparedData(tmp_path / "data")
    assert data.info.source_language == "de"
    assert data.info.target_language == "en"
    assert data.info.bleu_tokenize == "13a"
    assert not data.info.has_alignments
    train = data.split("train")
    assert len(train) == 20
    assert train.source_text(1) == "Zwei Hunde laufen!"
    assert train.source[1].dtype == np.int32
    assert data.source_tokenizer.decode(train.source[1]) == "Zwei Hunde laufen!"
    assert data.target_tokenizer.tokens(train.target[1]) == ["Two", "dogs", "run", "!"]
    assert train.source_lengths.tolist() == [len(train.source[row]) for row in range(20)]
    assert train.links("sure", 0).shape == train.links("possible", 0).shape == (0, 2)


def test_prepare_learns_the_tokenizer_from_training_text_alone(tmp_path, hub_corpus):
    folder = write_rows(
        tmp_path / "c", [{"de": "eins", "en": "one"}], test=[{"de": "zwei", "en": "one"}]
    )
    data = prepared(hub_corpus(folder), tmp_path)
    assert data.split("test").source[0].tolist() == [UNK]
    assert data.stats["splits"]["test"]["source"]["unknown_rate"] == 1.0
    assert data.stats["splits"]["test"]["target"]["unknown_tokens"] == 0


def test_prepare_counts_every_bad_row_by_its_reason(tmp_path, hub_corpus):
    rows = [
        {"de": "gut so", "en": "good so"},
        {"de": "", "en": "empty"},
        {"de": " \t\u3000", "en": "blank"},
        {"de": None, "en": "nothing"},
        {"de": "ohne"},
        {"de": 5, "en": "five"},
        {"de": ["a"], "en": "list"},
        {"de": "x" * 101, "en": "enormous"},
        {"de": "eins zwei drei vier fünf", "en": "long"},
        {"de": "kurz", "en": "one two three four five six"},
    ]
    folder = write_rows(
        tmp_path / "c", rows, test=[{"de": "eins zwei drei vier fünf sechs", "en": "long"}]
    )
    cleaning = Cleaning(max_source_length=4, max_target_length=5, max_characters=100)
    stats = prepared(hub_corpus(folder, cleaning=cleaning), tmp_path).stats["splits"]
    assert stats["train"]["dropped"] == {
        "empty": 2,
        "missing": 2,
        "not_text": 1,
        "too_many_characters": 1,
        "source_too_long": 1,
        "target_too_long": 1,
    }
    assert (stats["train"]["rows"], stats["train"]["pairs"]) == (10, 2)
    assert stats["test"]["dropped"] == {}
    everywhere = Cleaning(max_source_length=4, limit_evaluation=True)
    with pytest.raises(
        ExperimentError, match=r"nothing is left of the test split.*1 source_too_long"
    ):
        prepare(hub_corpus(folder, cleaning=everywhere), Pairs, tmp_path / "data2")
    assert not (tmp_path / "data2").exists()


def test_cleaning_makes_one_spelling_and_single_spaces(tmp_path, hub_corpus):
    folder = write_rows(
        tmp_path / "c", [{"de": " a\u0308  b\n\u00a0c ", "en": "\u1112\u1161\u11ab"}]
    )
    train = prepared(hub_corpus(folder), tmp_path).split("train")
    assert train.source_text(0) == "ä b c"
    assert train.target_text(0) == "한"


@pytest.mark.parametrize("rows", [[{"de": "", "en": ""}], [{"de": [5], "en": [6]}]])
def test_prepare_without_a_row_left_is_refused_and_writes_nothing(tmp_path, hub_corpus, rows):
    folder = write_rows(tmp_path / "c", rows, rows or None, rows or None)
    with pytest.raises(ExperimentError, match="nothing is left of the train split") as error:
        prepare(hub_corpus(folder), Pairs, tmp_path / "data")
    assert len(error.value.problems) == 1
    assert sorted(os.listdir(tmp_path)) == ["c"]


def test_prepared_statistics_equal_those_of_the_ids(dates, tmp_path):
    data = prepared(dates(), tmp_path)
    for name in ("train", "validation", "test"):
        split, stats = data.split(name), data.stats["splits"][name]
        assert stats["pairs"] == len(split)
        for side, lengths in (("source", split.source_lengths), ("target", split.target_lengths)):
            assert stats[side]["tokens"] == lengths.sum()
            assert stats[side]["mean_length"] == pytest.approx(lengths.mean(), abs=1e-4)
            assert stats[side]["p95_length"] == np.percentile(lengths, 95, method="inverted_cdf")
            assert stats[side]["p50_length"] == np.percentile(lengths, 50, method="inverted_cdf")
            assert stats[side]["max_length"] == lengths.max()
            assert Counter(lengths.tolist()) == dict(stats[side]["length_histogram"])
    sizes = {"source": data.source_tokenizer.size, "target": data.target_tokenizer.size}
    assert data.stats["vocabulary"] == sizes


def test_prepare_writes_the_same_bytes_in_every_process_on_any_number_of_threads(
    tmp_path, hub_folder
):
    program = """
import sys
from pathlib import Path
from attnlab.data.corpus import Cleaning, SentenceCleaning
from attnlab.data.dates import DatesCorpus
from attnlab.data.hub import HubCorpus, LabelledCorpus
from attnlab.data.prepare import prepare
from attnlab.data.row_kinds import Pairs, Sentences
from attnlab.data.tokenizer import library_threads
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, WordTrainer
splits = {"train": "train", "validation": 0.2, "test": 0.2}
place = (None, sys.argv[2], None, None, splits, 1, None, None, None, None)
hub = HubCorpus(*place, "de", "en", None, None, 0, "13a", None, Cleaning(), BpeTrainer(joint=True))
labelled = LabelledCorpus(*place, "de", "en", None, SentenceCleaning(), WordTrainer())
locales, formats = ["en_US", "ja_JP"], ["full", "short"]
dates = DatesCorpus(
    locales, "ko_KR", formats, 1900, 2000, 200, 0.1, 0.1, 1, "char", CharacterTrainer()
)
with library_threads():
    prepare(hub, Pairs, Path(sys.argv[1]) / "hub")
    prepare(dates, Pairs, Path(sys.argv[1]) / "dates")
    prepare(labelled, Sentences, Path(sys.argv[1]) / "labelled")
"""
    for process, hash_seed, threads in (("a", "1", "1"), ("b", "2", "3")):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "TZ": "Asia/Seoul"}
        environment["RAYON_NUM_THREADS"] = threads
        arguments = [str(tmp_path / process), str(hub_folder)]
        subprocess.run([sys.executable, "-c", program, *arguments], check=True, env=environment)
    for corpus, kind in (
        ("hub", PreparedData),
        ("dates", PreparedData),
        ("labelled", LabelledData),
    ):
        first, second = (tmp_path / process / corpus for process in "ab")
        assert sorted(os.listdir(first)) == kind.files()
        assert all(
            (first / name).read_bytes() == (second / name).read_bytes() for name in kind.files()
        )
        assert kind(first).digest == kind(second).digest


def test_prepare_keeps_markup_and_control_characters_as_text(tmp_path, hub_corpus):
    nasty = "<script>alert(1)</script> <eos> \u202eabc\u0000 👩‍👩‍👧 ▁x"
    folder = write_rows(tmp_path / "c", [{"de": nasty, "en": nasty}])
    for trainer in (WordTrainer(min_frequency=1), BpeTrainer(min_frequency=1)):
        train = prepared(hub_corpus(folder, tokenizer=trainer), tmp_path).split("train")
        assert train.source_text(0) == " ".join(nasty.split())
        assert train.source[0].min() == UNK or train.source[0].min() > 3


def test_prepared_folder_that_lacks_a_file_is_refused(dates, tmp_path):
    prepare(dates(num_pairs=30), Pairs, tmp_path / "data")
    for lost in PreparedData.files():
        (tmp_path / "data" / lost).rename(tmp_path / lost)
        with pytest.raises(ExperimentError, match=f"lacks prepared data: {lost} missing"):
            PreparedData(tmp_path / "data")
        (tmp_path / lost).rename(tmp_path / "data" / lost)


def test_prepared_folder_that_is_damaged_or_of_another_format_is_refused(dates, tmp_path):
    prepare(dates(num_pairs=30), Pairs, tmp_path / "data")
    facts = tmp_path / "data" / "data.json"
    written = facts.read_text()
    facts.write_text(written.replace('"format": 2', '"format": 1'))
    with pytest.raises(ExperimentError, match="has format 1, not 2; run the prepare stage again"):
        PreparedData(tmp_path / "data")
    facts.write_text(written)
    for text in (b"{", b"[]"):
        (tmp_path / "data" / "stats.json").write_bytes(text)
        with pytest.raises(
            ExperimentError, match=r"stats.json is damaged \(.*run the prepare stage again"
        ):
            PreparedData(tmp_path / "data")


def test_links_between_fields_match_hand_computed_links():
    # "am 5. Mai" -> "5월 5일": the day is one token on each side, the month three against two.
    source = [(0, 2), (2, 4), (4, 5), (6, 7), (7, 8), (8, 9)]
    target = [(0, 1), (1, 2), (2, 4), (4, 5)]
    sure, possible = links_between(source, target, [(3, 4), (6, 9)], [(3, 4), (0, 2)])
    assert sure == [[2, 1]]
    assert possible == [[0, 3], [0, 4], [0, 5], [1, 3], [1, 4], [1, 5], [2, 1]]


@pytest.mark.parametrize(
    "trainer",
    [CharacterTrainer(), WordTrainer(min_frequency=1), BpeTrainer(vocabulary_size=120)],
    ids=lambda trainer: type(trainer).__name__,
)
def test_prepared_dates_link_the_tokens_of_the_year(dates, tmp_path, trainer):
    """The year is written alike on both sides.

    So its tokens must be linked, and only to tokens of the year.
    """
    data = prepared(dates(tokenizer=trainer, source_locales=["de_DE"]), tmp_path)
    split = data.split("train")
    assert data.info.has_alignments
    for row in range(len(split)):
        source_text, target_text = split.source_text(row), split.target_text(row)
        (source,) = data.source_tokenizer.offsets([source_text])
        (target,) = data.target_tokenizer.offsets([target_text])
        assert data.source_tokenizer.encode_ids([source_text]) == [split.source[row].tolist()]
        year = target_text[:4]
        at = source_text.index(year)
        source_year = {i for i, (a, b) in enumerate(source) if a < at + 4 and b > at}
        target_year = {i for i, (a, b) in enumerate(target) if a < 4 and b > 0}
        links = {tuple(link) for link in split.links("possible", row).tolist()}
        assert {(t, s) for t, s in links if t in target_year} >= {
            (t, s) for t in target_year for s in source_year
        }
        if isinstance(trainer, CharacterTrainer):
            assert {s for t, s in links if t in target_year} == source_year
        sure = {tuple(link) for link in split.links("sure", row).tolist()}
        assert sure <= links
        assert all(0 <= t < len(target) and 0 <= s < len(source) for t, s in links)


SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real corpora are not here")
def test_prepare_real_corpora_of_several_languages(tmp_path, hub_corpus):
    words = WordTrainer(split="whitespace", min_frequency=2)
    prepare(hub_corpus(SHARED / "multi30k_tok", tokenizer=words), Pairs, tmp_path / "captions")
    captions = PreparedData(tmp_path / "captions")
    assert captions.stats["vocabulary"] == {"source": 7859, "target": 5921}
    assert [len(captions.split(s)) for s in ("train", "validation", "test")] == [
        29_000,
        1_014,
        1_000,
    ]

    prepare(
        hub_corpus(SHARED / "tatoeba_ko_en", source="en", target="ko"), Pairs, tmp_path / "korean"
    )
    korean = PreparedData(tmp_path / "korean").split("train")
    tokenizer = PreparedData(tmp_path / "korean").target_tokenizer
    for row in range(0, len(korean), 50):
        assert tokenizer.decode(korean.target[row]) == korean.target_text(row)


@pytest.mark.parametrize(
    ("changed", "text", "written"),
    [
        ({"lowercase": True}, "Jon hears it", "jon hears it"),
        ({"normalization": "nfkc"}, "\uff21\uff22", "AB"),
    ],
)
def test_references_that_their_own_tokens_write_otherwise_are_counted(
    tmp_path, hub_corpus, changed, text, written
):
    rows = [{"de": "eins", "en": text}, {"de": "zwei", "en": "two"}]
    folder = write_rows(tmp_path / "c", rows, rows, rows)
    trainer = WordTrainer(min_frequency=1, **changed)
    data = prepared(hub_corpus(folder, tokenizer=trainer), tmp_path)
    counted = data.stats["splits"]["test"]
    assert counted["rewritten"] == 1
    assert counted["first_rewritten"] == f"{text!r} as {written!r}"
    assert "rewritten" not in data.stats["splits"]["train"]
    remark, _ = remarks(data.stats)  # of test and of validation
    assert remark.startswith("warning: of the 2 targets of test 1 are written otherwise")


@pytest.mark.parametrize("normalization", ["none", "nfc", "nfd"])
def test_references_in_syllables_are_none_of_those_written_otherwise(
    tmp_path, hub_corpus, normalization
):
    rows = [{"de": "a", "en": "나는 학생입니다"}, {"de": "b", "en": "Grüße, <eos>"}]
    folder = write_rows(tmp_path / "c", rows, rows, [*rows, {"de": "a", "en": "unseen Grüße"}])
    trainer = WordTrainer(min_frequency=1, normalization=normalization)
    data = prepared(hub_corpus(folder, tokenizer=trainer), tmp_path)
    assert list(remarks(data.stats)) == []


def test_possible_alignments_alone_are_read(tmp_path, hub_corpus):
    rows = [{"de": "ein Hund", "en": "a dog", "maybe": "0-0 1-1"}]
    folder = write_rows(tmp_path / "c", rows, rows, rows)
    data = prepared(hub_corpus(folder, possible_alignments="maybe"), tmp_path)
    assert data.info.has_alignments
    assert data.split("test").links("possible", 0).tolist() == [[0, 0], [1, 1]]
    assert data.split("test").links("sure", 0).tolist() == []
