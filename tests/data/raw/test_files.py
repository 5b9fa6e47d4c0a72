"""Awkward files: each is read as its author meant it, or refused.

The error says where the problem is and what to do.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import unicodedata
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

    def pairs_of(
        files: dict[str, bytes], alone: str | None = None, **form: Any
    ) -> tuple[Pairs, list[str]]:
        folder = tmp_path / "corpus"
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        raw = RawData(
            None, folder / alone if alone else folder, None, None, COLUMNS, Format(**form)
        )
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
    "byte order marks of both sides": (
        {"train.de": b"\xef\xbb\xbfa\r\nc\r\n", "train.en": b"\xef\xbb\xbfb\nd"},
        {},
    ),
    "one packed side": ({"train.de": b"a\nc\n", "train.en.gz": gzip.compress(b"b\nd\n")}, {}),
    "names of OpenNMT": ({"de-train.txt": b"a\nc\n", "en-train.txt": b"b\nd\n"}, {}),
    "bz2": ({"train.csv.bz2": bz2.compress(b"de,en\na,b\nc,d\n")}, {}),
    "xz": ({"train.jsonl.xz": lzma.compress(b'{"de":"a","en":"b"}\n{"de":"c","en":"d"}\n')}, {}),
    "header as in data.columns": (
        {"train.tsv": b"de\ten\na\tb\nc\td\n"},
        {"columns": ["de", "en"]},
    ),
    "header twice": ({"train.csv": b"\xef\xbb\xbfde,en\na,b\n\xef\xbb\xbfde,en\nc,d\n"}, {}),
    "text table by separator": ({"train.txt": b"de\ten\na\tb\nc\td\n"}, {"separator": "\t"}),
    "name in capitals": ({"TRAIN.CSV": b"de,en\na,b\nc,d\n"}, {}),
    "line of spaces": ({"train.csv": b"de,en\na,b\n  \nc,d\n"}, {}),
    "separator": ({"train.csv": b"de;en\na;b\nc;d\n"}, {"separator": ";"}),
    "columns": ({"train.tsv": b"b\ta\tCC-BY\nd\tc\tCC-BY\n"}, {"columns": ["en", "de", "licence"]}),
    "utf-16": ({"train.csv": "de,en\na,b\nc,d\n".encode("utf-16")}, {"encoding": "utf-16"}),
    "pretty printed list": (
        {"train.json": b'[\n {"de": "a",\n  "en": "b"},\n {"de": "c",\n  "en": "d"}\n]\n'},
        {},
    ),
    "object of lists": ({"train.json": b'{"de": ["a", "c"], "en": ["b", "d"]}'}, {}),
    "objects behind each other": (
        {"train.json": b'{"de": "a",\n "en": "b"}\n{"de": "c",\n "en": "d"}'},
        {},
    ),
}


@pytest.mark.parametrize("case", GOOD)
def test_awkward_file_is_read_as_meant(case: str, read: Read) -> None:
    files, form = GOOD[case]
    assert read(files, **form)[0] == AB


BAD = {
    "a field too many": (
        {"train.tsv": b"de\ten\na\tb\tCC\n"},
        {},
        "train.tsv, line 2: 3 fields, the header has 2",
    ),
    "a field too many, once": (
        {"train.csv": b"de,en\na,b\nc,d,\n"},
        {},
        "train.csv, line 3: 3 fields, the header has 2",
    ),
    "a field too few": (
        {"train.csv": b"de,en\na,b\nc\n"},
        {},
        "train.csv, line 3: 1 field, the header has 2",
    ),
    "too many for the columns": (
        {"train.tsv": b"a\tb\tc\n"},
        {"columns": ["de", "en"]},
        "line 1: 3 fields, data.columns has 2",
    ),
    "an open quotation mark": (
        {"train.csv": b'de,en\n"a,b\nc,d\n'},
        {},
        "train.csv, line 2: its quotation marks do not pair",
    ),
    "a stray quotation mark": (
        {"train.csv": b'de,en\n"a" he said,b\n'},
        {},
        "train.csv, line 2: its quotation marks do",
    ),
    "two columns of one name": (
        {"train.csv": b"de,en,en\na,b,c\n"},
        {},
        "2 columns are called 'en'",
    ),
    "latin-1": (
        {"train.csv": b"de,en\na,b\n\xe4,d\n"},
        {},
        "train.csv, line 3: the byte 0xe4 is not UTF-8; name the encoding",
    ),
    "utf-16": ({"train.csv": "de,en\n".encode("utf-16")}, {}, "choose data.encoding=utf-16"),
    "not the encoding": (
        {"train.csv": b"de,en\n\xff\xff,b\n"},
        {"encoding": "cp949"},
        "train.csv is not cp949 throughout",
    ),
    "line ends of old Macs": (
        {"train.de": b"a\rc\r", "train.en": b"b\rd\r"},
        {},
        "train.de has carriage returns in place of line feeds",
    ),
    "unequal": ({"train.de": b"a\nb\n", "train.en": b"a\n"}, {}, "train.de has 2 lines, but"),
    "one side": (
        {"train.de": b"a\n"},
        {},
        "train.de, but no train.en beside it; it holds train.de",
    ),
    "one side twice": (
        {"train.de": b"a\n", "train.de.gz": b"", "train.en": b"b\n"},
        {},
        "train.de and train.de.gz are one file",
    ),
    "a torn line": (
        {"train.jsonl": b'{"de": "a", "en": "b"}\n{"de": "c", \n'},
        {},
        "train.jsonl, line 2: this is no JSON",
    ),
    "a row that is a list": (
        {"train.jsonl": b'{"de": "a", "en": "b"}\n["c", "d"]\n'},
        {},
        "line 2: a row must be an object",
    ),
    "rows under a key": (
        {"train.json": b'{"version": 1, "data": [{"de": "a"}]}'},
        {},
        "give the list of rows under 'data'",
    ),
    "lists of different lengths": (
        {"train.json": b'{"de": ["a"], "en": []}'},
        {},
        "'de' has 1, 'en' has 0",
    ),
    "not gzip": (
        {"train.csv.gz": b"de,en\n"},
        {},
        "train.csv.gz cannot be read: Not a gzipped file",
    ),
    "torn gzip": (
        {"train.csv.gz": gzip.compress(b"de,en\na,b\n" * 99)[:-9]},
        {},
        "train.csv.gz cannot be read",
    ),
    "gzip without its suffix": (
        {"train.csv": gzip.compress(b"de,en\n")},
        {},
        "packed with gzip; call it train.csv.gz",
    ),
    "Excel as csv": ({"train.csv": b"PK\x03\x04\xff\xff"}, {}, "a zip archive or a file of Excel"),
    "pointer of Git LFS": (
        {"train.csv": b"version https://git-lfs.github.com/spec/v1\n"},
        {},
        "fetch it with `git lfs pull`",
    ),
    "web page": (
        {"train.csv": b"<!DOCTYPE html>\n<html>"},
        {},
        "is a web page and not the file itself",
    ),
    "objects of columns": (
        {"train.json": b'{"de": {"0": "a"}, "en": {"0": "b"}}'},
        {},
        "orient='records', lines=True",
    ),
    "objects of rows": (
        {"train.json": b'{"0": {"de": "a", "en": "b"}}'},
        {},
        "orient='records', lines=True",
    ),
    "separator for json": (
        {"train.json": b"[]"},
        {"separator": ";"},
        "data.separator is for tables",
    ),
    "two kinds without splits": (
        {"data.csv": b"de,en\na,b\n", "package.json": b"{}"},
        {},
        "data.csv, package.json; give data.path",
    ),
    "empty": ({"train.csv": b""}, {}, "has no rows in split 'train'"),
    "a document": ({"notes.docx": b"a"}, {}, "it holds notes.docx; known kinds are"),
}


@pytest.mark.parametrize("case", BAD)
def test_faulty_file_is_refused_with_its_place(case: str, read: Read) -> None:
    files, form, said = BAD[case]
    assert said in refusal(read, files, **form)


MISSING = {
    "other separator": (
        "train.csv",
        b"de;en\na;b\n",
        "the columns of train.csv are: de;en; its fields seem to be separated",
    ),
    "semicolons": ("train.csv", b"de;en\na;b\n", "otherwise, try data.separator=semicolon"),
    "tabs in csv": ("train.csv", b"de\ten\na\tb\n", "otherwise, try data.separator=tab"),
    "no header": (
        "train.tsv",
        b"x\ty\tz\n",
        "name all columns by data.columns where the first line is a row already",
    ),
    "a line for Excel": (
        "train.csv",
        b"sep=;\nde;en\na;b\n",
        "its first line is for Excel alone: remove it",
    ),
    "many columns": (
        "train.csv",
        ",".join(f"c{i}" for i in range(99)).encode() + b"\n",
        "c10, c11 and 87 more; choose",
    ),
    "other names": (
        "train.jsonl",
        b'{"src": "a"}',
        "there is no column 'de' in split 'train'; the columns of train.jsonl are: src",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_table_without_a_wanted_column_is_refused_with_what_to_try(
    case: str, tmp_path: Path, hub_corpus: Any
) -> None:
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
    assert notes == [f"ignored {other}: the rows are read from train.csv"]


REMARKABLE = {
    "several lines": (
        'de,en\n"a\nb\nc",d\n',
        "1 row(s) span several lines within quotation marks, the first lines 2 to 4",
    ),
    "nameless column": (
        "de,en,\na,b,c\nd,e,\n",
        "1 row(s) have text in a column without a name, which is not read, the first line 2",
    ),
    "space and quote": (
        'de,en\n"a", "b"\n',
        "1 row(s) have a space before a quotation mark, which is then a character like",
    ),
    "header again": (
        "de,en\na,b\nde,en\n",
        "1 row(s) repeat the header, and are left out, the first line 3",
    ),
}


@pytest.mark.parametrize("case", REMARKABLE)
def test_odd_table_is_read_and_what_is_odd_is_said(case: str, read: Read) -> None:
    content, said = REMARKABLE[case]
    (note,) = read({"train.csv": content.encode()})[1]
    assert note.startswith(f"train.csv: {said}")


def test_quotation_marks_around_all_cells_of_tsv_are_said(read: Read) -> None:
    pairs, (note,) = read({"train.tsv": b'de\ten\n"a"\t"b"\n'})
    assert pairs == [('"a"', '"b"')]
    assert "every cell stands in quotation marks" in note


def test_splits_are_found_by_names_in_capitals_and_of_several_kinds(tmp_path: Path) -> None:
    (tmp_path / "Train.csv").write_bytes(b"de,en\na,b\n")
    (tmp_path / "Test.TSV").write_bytes(b"de\ten\nc\td\n")
    raw = RawData(None, tmp_path, None, None, COLUMNS, Format())
    assert sorted(raw.splits) == ["test", "train"]
    assert (raw.read("train")["source"][:], raw.read("test")["source"][:]) == (["a"], ["c"])


def test_files_that_make_one_split_are_said(read: Read) -> None:
    _, notes = read({"train.csv": b"de,en\na,b\n", "train (1).csv": b"de,en\na,b\n"})
    assert notes == ["the split train is read from 2 files: train (1).csv, train.csv"]


@pytest.mark.parametrize("content", [b'{"de": NaN, "en": "a"}\n', b'{"de": null, "en": "a"}\n'])
def test_nan_is_a_missing_cell_and_quoted_nan_a_text(content: bytes, read: Read) -> None:
    assert read({"train.jsonl": content + b'{"de": "NaN", "en": "b"}\n'})[0] == [
        (None, "a"),
        ("NaN", "b"),
    ]


def test_nan_of_a_typed_column_is_a_missing_cell(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"de": [1.0, float("nan")], "en": ["a", "b"]}), tmp_path / "train.parquet"
    )
    assert RawData(None, tmp_path, None, None, COLUMNS, Format()).read("train")["source"] == [
        "1",
        None,
    ]


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
        {
            "train.jsonl": json.dumps({"de": awkward, "en": "x"}, ensure_ascii=False).encode()
            + b"\n"
        },
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
    lines = [
        {"translation": {"de": "a", "en": "b"}},
        {"translation": {"de": "c"}},
        {"translation": None},
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = {"source": "translation.de", "target": "translation.en"}
    rows = RawData(None, tmp_path, None, None, columns, Format()).read("train")
    assert list(zip(rows["source"], rows["target"], strict=True)) == [
        ("a", "b"),
        ("c", None),
        (None, None),
    ]


def test_typed_columns_are_read_as_text(tmp_path: Path) -> None:
    table = pa.table({
        "de": pa.array(["a", "b"]).dictionary_encode(),
        "en": pa.array([1, None]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "train.parquet")
    rows = RawData(None, tmp_path, None, None, COLUMNS, Format()).read("train")
    assert list(zip(rows["source"], rows["target"], strict=True)) == [("a", "1"), ("b", None)]


COMPOSED, DECOMPOSED = "원문", unicodedata.normalize("NFD", "원문")


def write_hangul_column(path: Path) -> str:
    """Write a table whose only row has "a" in a decomposed column; returns the column's name.

    The table is a file, or a folder of `save_to_disk`.
    """
    rows = {DECOMPOSED: ["a"], "en": ["b"]}
    if path.suffix == ".csv":
        path.write_text(f"{DECOMPOSED},en\na,b\n", encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text(json.dumps({DECOMPOSED: "a", "en": "b"}), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(rows), path)
    else:
        datasets.Dataset.from_dict(rows).save_to_disk(path)
    return COMPOSED


@pytest.mark.parametrize("name", ["train.csv", "train.jsonl", "train.parquet", "saved"])
def test_column_is_found_in_the_other_form_of_hangul(name: str, tmp_path: Path) -> None:
    columns = {"source": write_hangul_column(tmp_path / name), "target": "en"}
    assert RawData(None, tmp_path / name, None, None, columns, Format()).read("train")[
        "source"
    ] == ["a"]


def test_nested_column_is_found_in_the_other_form_of_hangul(tmp_path: Path) -> None:
    pairs = pa.array([{DECOMPOSED: "a", "en": "b"}])
    pq.write_table(pa.table({"translation": pairs}), tmp_path / "train.parquet")
    columns = {"source": f"translation.{COMPOSED}", "target": "translation.en"}
    assert RawData(None, tmp_path / "train.parquet", None, None, columns, Format()).read("train")[
        "source"
    ] == ["a"]


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
    with pytest.raises(
        ExperimentError, match="sets options of `datasets` that attnlab does not read: quotechar="
    ):
        RawData(None, tmp_path, "quoted", None, COLUMNS, Format())


GRUESSE = "schöne Grüße aus Köln"


@pytest.mark.parametrize("encoding", ["cp949", "latin-1", "cp1252", "utf-16"])
def test_utf_8_is_refused_under_another_encoding(encoding: str, read: Read) -> None:
    files = {"train.de": f"{GRUESSE}\n".encode(), "train.en": b"greetings\n"}
    sentence = refusal(read, files, encoding=encoding)
    assert f"train.de is written in UTF-8, but data.encoding says {encoding}" in sentence
    assert f"`iconv -f {encoding} -t utf-8`" in sentence


def test_ascii_is_refused_as_utf_16_and_read_as_anything_else(read: Read) -> None:
    files = {"train.tsv": b"de\ten\na\tb\nc\td\n"}
    assert "train.tsv is written in UTF-8" in refusal(read, files, encoding="utf-16-le")
    assert read(files, encoding="cp949") == (AB, [])


@pytest.mark.parametrize("encoding", ["cp949", "euc-kr", "utf-16", "utf-16-le", "utf-32"])
def test_text_in_the_encoding_that_is_given_is_read(encoding: str, read: Read) -> None:
    lines = "de\ten\n나는 학생입니다\tI am a student\n"
    pairs, notes = read({"train.tsv": lines.encode(encoding)}, encoding=encoding)
    assert (pairs, notes) == ([("나는 학생입니다", "I am a student")], [])


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_named(encoding: str, read: Read) -> None:
    files = {"train.tsv": "de\ten\nHello\tHallo\n".encode(encoding)}
    sentence = refusal(read, files)
    assert "seems to be UTF-16 without a byte order mark" in sentence
    assert sentence.endswith(f"choose data.encoding={encoding}")
    assert read(files, encoding=encoding) == ([("Hello", "Hallo")], [])


def test_utf_32_is_not_taken_for_utf_16(read: Read) -> None:
    files = {"train.tsv": "de\ten\nHello\tHallo\n".encode("utf-32")}
    assert refusal(read, files).endswith("the mark of UTF-32; choose data.encoding=utf-32")


def test_header_in_another_order_than_the_config_has_is_refused(read: Read) -> None:
    files = {"train.tsv": b"DE\tEN\nHallo\tHi\n"}
    sentence = refusal(read, files, columns=["en", "de"])
    assert "line 1: the header has DE, EN, but data.columns says en, de" in sentence


def test_quotes_of_pandas_in_a_tsv_are_said(read: Read) -> None:
    content = b'de\ten\nHallo\tHi\n"Er sagte ""hallo""."\tHe said hello.\n'
    pairs, (note,) = read({"train.tsv": content})
    assert pairs[1] == ('"Er sagte ""hallo""."', "He said hello.")
    assert "1 row(s) have a cell in quotation marks with doubled ones in it" in note
    assert note.endswith("the first line 3")


def test_mark_before_a_quoted_field_of_a_concatenated_csv_is_none_of_the_text(read: Read) -> None:
    content = b'de,en\na,b\n\xef\xbb\xbf"de","en"\n"c","d"\n'
    pairs, (note,) = read({"train.csv": content})
    assert pairs == AB
    assert "repeat the header" in note
