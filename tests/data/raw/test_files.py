"""Awkward files, each read as its author meant it or refused by a sentence that says where and what to do."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnlab.data.raw.loading import RawData
from attnlab.data.raw.rows import FAULT, PLACE, Format
from attnlab.errors import ExperimentError

COLUMNS = {"source": "de", "target": "en"}
Pairs = list[tuple[str | None, str | None]]
Read = Callable[..., tuple[Pairs, list[str]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes files into a folder, and gives the pairs of its training split and the notes."""

    def pairs_of(files: dict[str, bytes], alone: str | None = None, **form: Any) -> tuple[Pairs, list[str]]:
        folder = tmp_path / "corpus"
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        raw = RawData(None, folder / alone if alone else folder, None, None, COLUMNS, Format(**form))
        rows = raw.read("train")
        return list(zip(rows["source"], rows["target"], strict=True)), raw.notes

    return pairs_of


def refusal(read: Read, files: dict[str, bytes], alone: str | None = None, **form: Any) -> str:
    with pytest.raises(ExperimentError) as caught:
        read(files, alone, **form)
    (sentence,) = caught.value.problems
    assert sentence.startswith("data.")
    assert "\n" not in sentence
    return sentence


AB: Pairs = [("a", "b"), ("c", "d")]
GOOD = {
    "empty fields behind every row": ({"train.tsv": b"de\ten\na\tb\t\t\nc\td\t\t\n"}, {}),
    "separators behind header and rows": ({"train.csv": b"de,en,\na,b,\nc,d,\n"}, {}),
    "separators behind the header alone": ({"train.csv": b"de,en,\na,b\nc,d\n"}, {}),
    "blank lines in a table": ({"train.csv": b"de,en\n\na,b\r\n\r\nc,d\n\n"}, {}),
    "byte order mark in a table": ({"train.csv": b"\xef\xbb\xbfde,en\na,b\nc,d\n"}, {}),
    "byte order mark in quotes": ({"train.csv": b'\xef\xbb\xbf"de","en"\n"a","b"\n"c","d"\n'}, {}),
    "byte order marks of both sides": ({"train.de": b"\xef\xbb\xbfa\r\nc\r\n", "train.en": b"\xef\xbb\xbfb\nd"}, {}),
    "one packed side": ({"train.de": b"a\nc\n", "train.en.gz": gzip.compress(b"b\nd\n")}, {}),
    "names of OpenNMT": ({"de-train.txt": b"a\nc\n", "en-train.txt": b"b\nd\n"}, {}),
    "bz2": ({"train.csv.bz2": bz2.compress(b"de,en\na,b\nc,d\n")}, {}),
    "xz": ({"train.jsonl.xz": lzma.compress(b'{"de":"a","en":"b"}\n{"de":"c","en":"d"}\n')}, {}),
    "separator": ({"train.csv": b"de;en\na;b\nc;d\n"}, {"separator": ";"}),
    "columns": ({"train.tsv": b"b\ta\tCC-BY\nd\tc\tCC-BY\n"}, {"columns": ["en", "de", "licence"]}),
    "utf-16": ({"train.csv": "de,en\na,b\nc,d\n".encode("utf-16")}, {"encoding": "utf-16"}),
    "pretty printed list": ({"train.json": b'[\n {"de": "a",\n  "en": "b"},\n {"de": "c",\n  "en": "d"}\n]\n'}, {}),
    "object of lists": ({"train.json": b'{"de": ["a", "c"], "en": ["b", "d"]}'}, {}),
    "objects behind each other": ({"train.json": b'{"de": "a",\n "en": "b"}\n{"de": "c",\n "en": "d"}'}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_awkward_file_is_read_as_meant(case: str, read: Read) -> None:
    files, form = GOOD[case]
    assert read(files, **form)[0] == AB


BAD = {
    "a field too many": ({"train.tsv": b"de\ten\na\tb\tCC\n"}, {}, "train.tsv, line 2: 3 fields, the header has 2"),
    "a field too many, once": (
        {"train.csv": b"de,en\na,b\nc,d,\n"}, {},
        "train.csv, line 3: 3 fields, the header has 2",
    ),
    "a field too few": ({"train.csv": b"de,en\na,b\nc\n"}, {}, "train.csv, line 3: 1 field, the header has 2"),
    "too many for the columns": (
        {"train.tsv": b"a\tb\tc\n"}, {"columns": ["de", "en"]},
        "line 1: 3 fields, data.columns has 2",
    ),
    "an open quotation mark": (
        {"train.csv": b'de,en\n"a,b\nc,d\n'}, {},
        "train.csv, line 2: its quotation marks do not pair",
    ),
    "a stray quotation mark": (
        {"train.csv": b'de,en\n"a" he said,b\n'}, {},
        "train.csv, line 2: its quotation marks do",
    ),
    "a header and data.columns": (
        {"train.tsv": b"de\ten\na\tb\n"}, {"columns": ["de", "en"]},
        "leave data.columns out",
    ),
    "two columns of one name": ({"train.csv": b"de,en,en\na,b,c\n"}, {}, "2 columns are called 'en'"),
    "latin-1": (
        {"train.csv": b"de,en\na,b\n\xe4,d\n"}, {},
        "train.csv, line 3: the byte 0xe4 is not UTF-8; name the encoding",
    ),
    "utf-16": ({"train.csv": "de,en\n".encode("utf-16")}, {}, "choose data.encoding=utf-16"),
    "not the encoding": (
        {"train.csv": b"de,en\n\xff\xff,b\n"}, {"encoding": "cp949"},
        "train.csv is not cp949 throughout",
    ),
    "line ends of old Macs": (
        {"train.de": b"a\rc\r", "train.en": b"b\rd\r"}, {},
        "train.de has carriage returns but no line feed",
    ),
    "unequal": ({"train.de": b"a\nb\n", "train.en": b"a\n"}, {}, "train.de has 2 lines, but"),
    "one side": ({"train.de": b"a\n"}, {}, "train.de, but no train.en beside it; it holds train.de"),
    "one side twice": (
        {"train.de": b"a\n", "train.de.gz": b"", "train.en": b"b\n"}, {},
        "train.de and train.de.gz are one file",
    ),
    "a torn line": (
        {"train.jsonl": b'{"de": "a", "en": "b"}\n{"de": "c", \n'}, {},
        "train.jsonl, line 2: this is no JSON",
    ),
    "a row that is a list": (
        {"train.jsonl": b'{"de": "a", "en": "b"}\n["c", "d"]\n'}, {},
        "line 2: a row must be an object",
    ),
    "rows under a key": (
        {"train.json": b'{"version": 1, "data": [{"de": "a"}]}'}, {},
        "give the list of rows under 'data'",
    ),
    "lists of different lengths": ({"train.json": b'{"de": ["a"], "en": []}'}, {}, "'de' has 1, 'en' has 0"),
    "not gzip": ({"train.csv.gz": b"de,en\n"}, {}, "train.csv.gz cannot be read: Not a gzipped file"),
    "torn gzip": ({"train.csv.gz": gzip.compress(b"de,en\na,b\n" * 99)[:-9]}, {}, "train.csv.gz cannot be read"),
    "separator for json": ({"train.json": b"[]"}, {"separator": ";"}, "data.separator is for tables"),
    "two kinds without splits": (
        {"data.csv": b"de,en\na,b\n", "package.json": b"{}"}, {},
        "data.csv, package.json; give data.path",
    ),
    "empty": ({"train.csv": b""}, {}, "has no rows in split 'train'"),
    "a document": ({"notes.docx": b"a"}, {}, "it holds notes.docx; known kinds are"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_faulty_file_is_refused_with_its_place(case: str, read: Read) -> None:
    files, form, said = BAD[case]
    assert said in refusal(read, files, **form)


MISSING = {
    "other separator": (
        "train.csv", b"de;en\na;b\n",
        "the columns of train.csv are: de;en; its fields seem to be separated",
    ),
    "semicolons": ("train.csv", b"de;en\na;b\n", "otherwise, try data.separator=';'"),
    "tabs in csv": ("train.csv", b"de\ten\na\tb\n", "otherwise, try data.separator=tab"),
    "no header": ("train.tsv", b"x\ty\tz\n", "name the file's 3 columns in their order, data.columns=[de,en,...]"),
    "other names": (
        "train.jsonl", b'{"src": "a"}',
        "there is no column 'de' in split 'train'; the columns of train.jsonl are: src",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSING)
def test_table_without_a_wanted_column_is_refused_with_what_to_try(case: str, tmp_path: Path, hub_corpus: Any) -> None:
    name, content, said = MISSING[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ExperimentError, match=r"^data\.source: ") as caught:
        hub_corpus(tmp_path, splits={"train": 0.5, "validation": 0.25, "test": 0.25}).load()
    assert said in str(caught.value)


def test_text_table_without_columns_is_refused_and_read_with_them(read: Read) -> None:
    files = {"deu.txt": b"b\ta\tCC-BY 2.0\nd\tc\tCC-BY 2.0\n"}
    assert "name the columns of a table by data.columns" in refusal(read, files, alone="deu.txt")
    assert read(files, alone="deu.txt", columns=["en", "de", "licence"])[0] == AB


@pytest.mark.parametrize("other", ["notes.json", "package.json", "old/more.csv"])
def test_file_that_names_no_split_is_ignored_and_said(other: str, read: Read) -> None:
    pairs, notes = read({"train.csv": b"de,en\nNA,null\n", other: b'{"de": "x", "en": "y"}'})
    assert pairs == [("NA", "null")]
    assert notes == [f"ignored {other}: it names no split, as the other files do"]


def test_ignored_fields_are_said_once_for_a_file(read: Read) -> None:
    assert read({"train.tsv": b"de\ten\n" + b"a\tb\t\n" * 5})[1] == [
        "train.tsv: its rows end in 1 empty field(s) behind the last column, ignored"
    ]


def test_rows_know_the_lines_where_they_begin(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(b'de,en\n"a\nb",c\n\nd,e\n')
    rows = RawData(None, tmp_path, None, None, COLUMNS, Format()).read("train")
    assert rows[PLACE] == ["train.csv, line 2", "train.csv, line 5"]


def test_carriage_return_and_unicode_line_ends_are_text(read: Read) -> None:
    awkward = "a\rb\u2028c\x85d\x0be"
    for files in (
        {"train.de": f"{awkward}\n".encode(), "train.en": b"x\n"},
        {"train.csv": f"de,en\n{awkward},x\n".encode()},
        {"train.tsv": f"de\ten\n{awkward}\tx\r\n".encode()},
        {"train.jsonl": json.dumps({"de": awkward, "en": "x"}, ensure_ascii=False).encode() + b"\n"},
    ):
        first = next(iter(files))
        assert read(files, alone=None if first == "train.de" else first)[0] == [(awkward, "x")]


def test_json_numbers_keep_their_spelling_and_null_is_missing(read: Read) -> None:
    lines = b'{"de": 8.560, "en": 1e3}\n{"de": 007.1, "en": "x"}\n'
    assert "line 2: this is no JSON" in refusal(read, {"train.jsonl": lines})
    lines = b'{"de": 8.560, "en": 1e3}\n{"de": true, "en": null}\n{"en": -0}\n'
    assert read({"train.jsonl": lines})[0] == [("8.560", "1e3"), ("true", None), (None, "-0")]


def test_list_and_surrogate_in_place_of_text_are_faults_with_their_content(tmp_path: Path) -> None:
    lines = [
        {"de": ["Tom"], "en": "a"},
        {"de": {"x": 1}, "en": "b"},
        {"de": "\ud800", "en": "c"},
        {"de": "d", "en": "e"},
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = RawData(None, tmp_path, None, None, COLUMNS, Format()).read("train")
    assert rows["source"] == [None, None, None, "d"]
    assert rows[FAULT] == [
        "'de' is a list: [\"Tom\"]", "'de' is an object: {\"x\": \"1\"}",
        "'de' is text with a lone surrogate: '\\\\ud800'", None,
    ]  # fmt: skip


def test_translation_with_a_missing_key_loses_one_row(tmp_path: Path) -> None:
    lines = [{"translation": {"de": "a", "en": "b"}}, {"translation": {"de": "c"}}, {"translation": None}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = {"source": "translation.de", "target": "translation.en"}
    rows = RawData(None, tmp_path, None, None, columns, Format()).read("train")
    assert list(zip(rows["source"], rows["target"], strict=True)) == [("a", "b"), ("c", None), (None, None)]


def test_typed_columns_are_read_as_text(tmp_path: Path) -> None:
    table = pa.table({
        "de": pa.array(["a", "b"]).dictionary_encode(),
        "en": pa.array([1, None]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "train.parquet")
    rows = RawData(None, tmp_path, None, None, COLUMNS, Format()).read("train")
    assert list(zip(rows["source"], rows["target"], strict=True)) == [("a", "1"), ("b", None)]


@pytest.mark.parametrize("whole", [True, False], ids=["splits", "one split"])
def test_folder_of_save_to_disk_is_read(whole: bool, tmp_path: Path) -> None:
    rows = datasets.Dataset.from_dict({"de": ["a", "c"], "en": ["b", "d"]})
    (datasets.DatasetDict(train=rows) if whole else rows).save_to_disk(tmp_path / "saved")
    read = RawData(None, tmp_path / "saved", None, None, COLUMNS, Format()).read("train")
    assert list(zip(read["source"], read["target"], strict=True)) == AB


CARD = """---
configs:
- config_name: semicolons
  data_files: a.csv
  sep: ";"
- config_name: quoted
  data_files: a.csv
  quotechar: "'"
---
"""


def test_card_of_a_dataset_says_the_separator_and_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(CARD)
    (tmp_path / "a.csv").write_bytes(b"de;en\na;b\n")
    read = RawData(None, tmp_path, "semicolons", None, COLUMNS, Format()).read("train")
    assert (read["source"][:], read["target"][:]) == (["a"], ["b"])
    with pytest.raises(ExperimentError, match="sets options of `datasets` that attnlab does not read: quotechar="):
        RawData(None, tmp_path, "quoted", None, COLUMNS, Format())
