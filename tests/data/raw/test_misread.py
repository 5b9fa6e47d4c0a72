"""Files that were once read as something else without a word: each is refused, noted or mended."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnlab.data.corpus import Cleaning, SentenceCleaning
from attnlab.data.hub import HubCorpus, LabelledCorpus
from attnlab.data.prepare import prepare
from attnlab.data.row_kinds import Pairs
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError

NAMED = {"train": "train", "validation": "validation", "test": "test"}
DRAWN = {"train": "train", "validation": 0.2, "test": 0.2}
TABLE = "de,en\n" + "".join(f"das ist {n},this is {n}\n" for n in range(10))
LINES = {"train.de": "".join(f"das ist {n}\n" for n in range(10))}


def settings_of(path: Path, **changed: Any) -> dict[str, Any]:
    return {
        "dataset": None, "path": str(path), "name": None, "revision": None, "splits": NAMED,
        "seed": 1, "limit": None, "columns": None, "separator": None, "encoding": None,
        "tokenizer": WordTrainer(min_frequency=1), **changed,
    }  # fmt: skip


def pairs(path: Path, **changed: Any) -> HubCorpus:
    own = {
        "source": "de", "target": "en", "alignments": None, "possible_alignments": None,
        "first_word": 0, "bleu_tokenize": "none", "rouge": None, "cleaning": Cleaning(),
    }  # fmt: skip
    return HubCorpus(**settings_of(path, **(own | changed)))


def labelled(path: Path, **changed: Any) -> LabelledCorpus:
    own = {"text": "text", "label": "label", "label_names": None, "cleaning": SentenceCleaning()}
    return LabelledCorpus(**settings_of(path, **(own | changed)))


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def refusal(corpus: HubCorpus | LabelledCorpus) -> str:
    with pytest.raises(ExperimentError) as error:
        corpus.load()
    (sentence,) = error.value.problems
    assert "\n" not in sentence
    return sentence


def sources(corpus: HubCorpus, split: str = "train") -> list[str]:
    return list(corpus.load()[split]["source"])


def labels_in_parquet(folder: Path, **names: list[str]) -> Path:
    for split, of_split in names.items():
        feature = {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=of_split)}
        rows = {"text": [f"a {name} film" for name in of_split], "label": [*range(len(of_split))]}
        table = datasets.Dataset.from_dict(rows, features=datasets.Features(feature))
        folder.mkdir(exist_ok=True)
        table.to_parquet(str(folder / f"{split}.parquet"))
    return folder


def test_labels_that_splits_number_differently_are_refused(tmp_path):
    both, all_three = ["angry", "sad"], ["angry", "happy", "sad"]
    folder = labels_in_parquet(tmp_path / "in", train=all_three, validation=both, test=both)
    assert refusal(labelled(folder)).startswith(
        "data.label: the split 'validation' names its labels 0, 1, ... angry, sad, but 'train' "
        "names them angry, happy, sad; write the names"
    )


def test_labels_that_a_split_lacks_at_the_end_are_one_numbering(tmp_path):
    names = {"train": ["a", "b"], "validation": ["a", "b", "c"], "test": ["a", "b"]}
    read = labelled(labels_in_parquet(tmp_path / "in", **names)).load()
    assert read["train"].features["label"].names == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("train_val.csv", {"test.csv": TABLE}),
        ("train-dev-test.csv", {}),
        ("TRAIN_VAL.csv", {"TEST.csv": TABLE}),  # in capitals `datasets` sees no splits
    ],
)
def test_file_that_names_several_splits_is_none_of_them(name, others, tmp_path):
    sentence = refusal(pairs(write(tmp_path / "in", {name: TABLE, **others})))
    assert f"{name} names the splits train and validation" in sentence
    assert "fractions to data.splits" in sentence


def test_name_of_a_file_goes_before_that_of_its_folder(tmp_path):
    files = {f"train_test/{split}.csv": TABLE.replace("das", split) for split in NAMED}
    corpus = pairs(write(tmp_path / "in", files))
    for split in NAMED:
        assert sources(corpus, split)[0] == f"{split} ist 0"


def test_file_that_a_card_gives_to_two_splits_is_noted(tmp_path):
    card = (
        "---\nconfigs:\n- config_name: own\n  data_files:\n"
        "  - split: train\n    path: a.csv\n  - split: validation\n    path: a.csv\n"
        "  - split: test\n    path: b.csv\n---\n"
    )
    corpus = pairs(write(tmp_path / "in", {"README.md": card, "a.csv": TABLE, "b.csv": TABLE}))
    corpus.load()
    assert "a.csv is in the splits train and validation, as the card says" in corpus.notes


@pytest.mark.parametrize("last", ["a café, and “quotes”", "one’s own"])
def test_utf_8_behind_its_start_is_seen_under_another_encoding(last, tmp_path):
    english = "this is a line\n" * 9_000 + f"{last}\n"
    german = "das ist eine Zeile\n" * 9_001
    folder = write(tmp_path / "in", {"train.en": english, "train.de": german})
    sentence = refusal(pairs(folder, splits=DRAWN, encoding="cp949"))
    assert "train.en is written in UTF-8, but data.encoding says cp949" in sentence


@pytest.mark.parametrize("encoding", ["latin-1", "iso-8859-15"])
def test_windows_1252_is_not_read_as_iso_8859(encoding, tmp_path):
    table = TABLE + "warte … schön,wait … nice\n"
    folder = write(tmp_path / "in", {"train.csv": table.encode("cp1252")})
    sentence = refusal(pairs(folder, splits=DRAWN, encoding=encoding))
    assert f"train.csv, line 12: the byte 0x85 is a control character in {encoding}" in sentence
    assert sentence.endswith("choose data.encoding=cp1252")
    read = pairs(folder, splits=DRAWN, encoding="cp1252").load()
    assert any("warte … schön" in rows["source"] for rows in read.values())


def test_feature_that_one_file_lacks_is_refused(tmp_path):
    table = "lemma\tform\ttags\nsee\tsaw\tPST\ngo\twent\tPST\n"
    files = {"train.tsv": table, "dev.tsv": table, "test.tsv": table.replace("tags", "Tags")}
    corpus = pairs(write(tmp_path / "in", files), source="lemma", target="form", features=["tags"])
    assert refusal(corpus).startswith(
        "data.features[0]: there is no column 'tags' in split 'test'; the columns of test.tsv are: "
        "lemma, form, Tags"
    )


def test_feature_that_one_split_of_parallel_files_lacks_is_refused(tmp_path):
    files = {f"{split}.{side}": "a\nb\n" for split in NAMED for side in ("de", "en", "tags")}
    del files["test.tags"]
    corpus = pairs(write(tmp_path / "in", files), features=["tags"])
    assert refusal(corpus).startswith(
        "data.features[0]: there is no column 'tags' in split 'test'; the columns of test.de are: "
        "de, en"
    )


@pytest.mark.parametrize("name", ["data[12]", "a*b", "corpus [2024]", "a::b"])
def test_name_of_a_folder_is_no_pattern(name, tmp_path):
    write(tmp_path, {"data1/train.csv": "de,en\nfalsch,wrong\n" * 9})
    folder = write(tmp_path / name, {"train.csv": TABLE})
    assert set(sources(pairs(folder, splits=DRAWN))) < {f"das ist {n}" for n in range(10)}


def test_card_in_a_folder_whose_name_is_a_pattern_is_refused(tmp_path):
    folder = write(tmp_path / "data[12]", {"README.md": "# data\n", "train.csv": TABLE})
    assert "takes *, ?, [, ] and :: in a path for a pattern" in refusal(pairs(folder, splits=DRAWN))


def test_quotes_of_excel_around_cells_with_a_comma_are_noted(tmp_path):
    table = 'de\ten\n"Hallo, Tom"\t"Hello, Tom"\nja\tyes\n"Ja, gern"\twith pleasure\n' * 2
    corpus = pairs(write(tmp_path / "in", {"train.tsv": table}), splits=DRAWN | {"test": 0.4})
    corpus.load()
    assert any("as Excel writes text delimited by tabs" in note for note in corpus.notes)


def test_quotes_around_speech_are_no_quotes_of_excel(tmp_path):
    table = 'de\ten\n"Hallo, Tom"\t"Hello, Tom"\nja, gern\tyes, please\nnein\tno\n' * 2
    corpus = pairs(write(tmp_path / "in", {"train.tsv": table}), splits=DRAWN | {"test": 0.4})
    corpus.load()
    assert not any("Excel" in note for note in corpus.notes)


def test_links_of_a_sentence_with_a_no_break_space_are_dropped_and_counted(tmp_path):
    files = {
        "train.de": LINES["train.de"] + "10\u00a0000 Hunde schlafen .\n",
        "train.en": LINES["train.de"] + "10\u00a0000 dogs sleep .\n",
        "train.align": "0-0 1-1 2-2\n" * 10 + "0-0 1-1 2-2 3-3\n",
    }
    folder = write(tmp_path / "in", files)
    prepare(pairs(folder, splits=DRAWN, alignments="align"), Pairs, tmp_path / "data")
    statistics = json.loads((tmp_path / "data" / "stats.json").read_text())
    dropped = [statistics["splits"][split]["dropped"].get("other_words", 0) for split in NAMED]
    assert sum(dropped) == 1


@pytest.mark.parametrize("header", ["DE\tEN", "De\tEn ", "de\ten"])
def test_header_in_another_case_than_the_given_columns_is_no_row(header, tmp_path):
    table = f"{header}\n" + TABLE.partition("\n")[2].replace(",", "\t")
    folder = write(tmp_path / "in", {"train.tsv": table})
    read = pairs(folder, splits=DRAWN, columns=["de", "en"]).load()
    assert sum(map(len, read.values())) == 10


def test_header_that_a_card_replaces_is_no_row(tmp_path):
    card = (
        "---\nconfigs:\n- config_name: own\n  data_files: a.csv\n  names: [de, en]\n"
        "  header: 0\n---\n"
    )
    table = TABLE.replace("de,en", "German,English")
    folder = write(tmp_path / "in", {"README.md": card, "a.csv": table})
    read = pairs(folder, splits=DRAWN).load()
    assert sum(map(len, read.values())) == 10


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("sep: '||'", "separates fields by '||'"),
        ("encoding: klingon", "names the encoding 'klingon'"),
    ],
)
def test_option_of_a_card_that_cannot_be_is_a_sentence(option, says, tmp_path):
    card = f"---\nconfigs:\n- config_name: own\n  data_files: a.csv\n  {option}\n---\n"
    folder = write(tmp_path / "in", {"README.md": card, "a.csv": TABLE})
    assert says in refusal(pairs(folder, splits=DRAWN))


def test_name_of_a_file_in_another_encoding_is_shown_with_its_bytes(tmp_path):
    folder = write(tmp_path / "in", {"train.csv": TABLE})
    (folder / os.fsdecode(b"\xc7\xd1.json")).write_text("{}")
    corpus = pairs(folder, splits=DRAWN)
    read = corpus.load()
    assert read["train"]["place"][0].startswith("train.csv, line")
    (note,) = (note for note in corpus.notes if note.startswith("ignored"))
    note.encode()


def test_two_columns_of_one_name_in_parquet_are_refused(tmp_path):
    cells = [pa.array(["a", "b"])] * 3
    table = pa.Table.from_arrays(cells, names=["de", "en", "en"])
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "train.parquet")
    sentence = refusal(pairs(tmp_path / "in", splits=DRAWN))
    assert "train.parquet: 2 columns are called 'en'; rename one of them" in sentence


def test_values_that_lie_too_deep_are_refused_with_their_line(tmp_path):
    deep = '{"de": "a", "en": "b", "x": ' + "[" * 200_000 + "]" * 200_000 + "}\n"
    rows = '{"de": "a", "en": "b"}\n'
    folder = write(tmp_path / "in", {"train.jsonl": rows + deep})
    sentence = refusal(pairs(folder, splits=DRAWN))
    assert "train.jsonl, line 2: lists and objects lie too deep" in sentence


@pytest.mark.parametrize("setting", ["features", "alignments"])
def test_lists_in_place_of_text_are_named(setting, tmp_path):
    rows = '{"de": "a", "en": "b", "more": ["V", "PL"]}\n' * 10
    folder = write(tmp_path / "in", {"train.jsonl": rows})
    value = ["more"] if setting == "features" else "more"
    key = "features[0]" if setting == "features" else "alignments"
    sentence = refusal(pairs(folder, splits=DRAWN, **{setting: value}))
    assert sentence.startswith(f'data.{key}: \'more\' is a list: ["V", "PL"]')


def test_fraction_that_is_no_row_is_refused(tmp_path):
    folder = write(tmp_path / "in", {"train.csv": "de,en\na,b\nc,d\ne,f\ng,h\n"})
    splits = {"train": "train", "validation": 0.1, "test": 0.25}
    sentence = refusal(pairs(folder, splits=splits))
    assert sentence.startswith("data.splits.validation: 0.1 of 4 row(s) is no row")


def test_linked_folder_is_read(tmp_path):
    real = write(tmp_path / "elsewhere", {"train.csv": TABLE})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "data").symlink_to(real)
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    assert len(sources(pairs(tmp_path / "in", splits=DRAWN))) == 6


def test_backup_beside_a_table_is_ignored_and_said(tmp_path):
    files = {f"{split}.csv": TABLE for split in NAMED}
    corpus = pairs(write(tmp_path / "in", {**files, "train.csv.bak": "x"}))
    assert len(sources(corpus)) == 10
    assert any(note.startswith("ignored train.csv.bak") for note in corpus.notes)


def test_files_of_finder_and_readmes_are_no_sides(tmp_path):
    side = "".join(f"text {n}\n" for n in range(10))
    files = {"corpus.de": side, "corpus.en": side, "._corpus.de": "x\n", "._corpus.en": "x\n"}
    files |= {"README.de": "lies\n", "README.en": "read\n"}
    corpus = pairs(write(tmp_path / "in", files), splits=DRAWN | {"train": "corpus"})
    assert len(sources(corpus)) == 6


def test_one_side_of_parallel_files_can_be_both_columns(tmp_path):
    folder = write(tmp_path / "in", LINES)
    corpus = pairs(folder, target="de", splits=DRAWN)
    for row in corpus.load()["train"]:
        assert row["source"] == row["target"]


def test_old_mac_file_with_a_line_feed_at_its_end_is_refused(tmp_path):
    side = "\r".join(f"text {n}" for n in range(9)) + "\n"
    folder = write(tmp_path / "in", {"train.de": side, "train.en": side})
    assert "train.de has carriage returns in place of line feeds" in refusal(
        pairs(folder, splits=DRAWN)
    )


@pytest.mark.parametrize(("one", "other"), [("pos", "pos\u200b"), ("1", "1.0"), ("a", "a\ufeff")])
def test_labels_that_look_alike_are_noted(one, other, tmp_path):
    rows = [f"text {n}\t{label}" for n, label in enumerate([one, other, "neg"] * 4)]
    folder = write(tmp_path / "in", {"train.tsv": "text\tlabel\n" + "\n".join(rows) + "\n"})
    corpus = labelled(folder, splits=DRAWN)
    corpus.load()
    (note,) = (note for note in corpus.notes if "look alike" in note)
    assert note.startswith(f"the labels {one!a}, {other!a} look alike or are one number")


@pytest.mark.parametrize("nothing", ["\u200b", "\u3164", " \u2800 "])
def test_text_that_nobody_sees_is_empty(nothing):
    assert Cleaning().clean(nothing, "text") == "empty"
    assert Cleaning().clean(f"{nothing}a", "text") != "empty"
