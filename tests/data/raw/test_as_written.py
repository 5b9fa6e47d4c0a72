"""Whatever texts a table holds, they come back as they were written, from every kind of file."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.data.corpus import Cleaning
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.raw.loading import RawData
from attnlab.data.raw.rows import Format
from attnlab.data.row_kinds import Pairs

Table = list[tuple[str, str]]
COLUMNS = {"source": "de", "target": "en"}

NO_SURROGATES = st.characters(exclude_categories=["Cs"])
ANY_TEXT = st.text(NO_SURROGATES, min_size=1).filter(str.strip)
WITHOUT_LINE_FEEDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1
).filter(str.strip)
WITHOUT_TABS = WITHOUT_LINE_FEEDS.filter(lambda text: "\t" not in text)


def write_csv(folder: Path, rows: Table) -> None:
    with (folder / "train.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("de", "en"), *rows])


def write_tsv(folder: Path, rows: Table) -> None:
    lines = ["\t".join(row) + "\n" for row in [("de", "en"), *rows]]
    (folder / "train.tsv").write_text("".join(lines), encoding="utf-8", newline="\n")


def write_json(folder: Path, rows: Table) -> None:
    (folder / "train.json").write_text(
        json.dumps([{"de": de, "en": en} for de, en in rows]), encoding="utf-8"
    )


def write_jsonl(folder: Path, rows: Table) -> None:
    lines = [json.dumps({"de": de, "en": en}, ensure_ascii=False) + "\n" for de, en in rows]
    (folder / "train.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


def write_parquet(folder: Path, rows: Table) -> None:
    pq.write_table(
        pa.table({"de": [de for de, _ in rows], "en": [en for _, en in rows]}),
        folder / "train.parquet",
    )


def write_text(folder: Path, rows: Table) -> None:
    for i, suffix in enumerate(("de", "en")):
        lines = [row[i] + "\n" for row in rows]
        (folder / f"train.{suffix}").write_text("".join(lines), encoding="utf-8", newline="\n")


KINDS: dict[str, tuple[Callable[[Path, Table], None], st.SearchStrategy[str]]] = {
    "csv": (write_csv, ANY_TEXT),
    "tsv": (write_tsv, WITHOUT_TABS),
    "json": (write_json, ANY_TEXT),
    "jsonl": (write_jsonl, ANY_TEXT),
    "parquet": (write_parquet, ANY_TEXT),
    "text": (write_text, WITHOUT_LINE_FEEDS.filter(lambda text: not text.startswith("\ufeff"))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_table_comes_back_as_it_was_written(kind: str) -> None:
    write, texts = KINDS[kind]

    @settings(max_examples=150, deadline=None)
    @given(rows=st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
    def comes_back(rows: Table) -> None:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), rows)
            read = RawData(None, Path(folder), None, None, COLUMNS, Format()).read("train")
        assert list(zip(read["source"], read["target"], strict=True)) == rows

    comes_back()


AWKWARD = [
    "NA",
    "null",
    "None",
    "nan",
    "true",
    "000",
    "01",
    "1.50",
    "1e5",
    "-0",
    "2024-01-01",
    "18 apr 1992",
    '"Hi" he said',
    '"',
    "'",
    "a\u2028b",
    "a\x85b",
    "a\x0cb",
    "a\rb",
    "안녕",
    "한",
    "é",
    "e\u0301",
    "<eos>",
    "\\n",
    "a,b",
    "a;b",
    "=1+1",
    "#",
    "//",
    "[1, 2]",
    '{"a": 1}',
    "  two  spaces  ",
    "\u00a0no-break",
    "\x00",
    "\u202eabc",
    "👩‍👩‍👧",
]


@pytest.mark.parametrize("kind", KINDS)
def test_awkward_texts_are_prepared_as_they_were_written(
    kind: str, tmp_path: Path, hub_corpus
) -> None:
    rows = [(text, f"{text} {i}") for i, text in enumerate(AWKWARD)]
    folder = tmp_path / "corpus"
    folder.mkdir()
    KINDS[kind][0](folder, rows)
    splits = {"train": "train", "validation": 0.1, "test": 0.1}
    cleaning = Cleaning(unicode="none", whitespace="keep")
    prepare(hub_corpus(folder, splits=splits, cleaning=cleaning), Pairs, tmp_path / "data")
    data = PreparedData(tmp_path / "data")
    prepared = set()
    for split in (data.split(name) for name in data.sizes):
        prepared |= {(split.source_text(row), split.target_text(row)) for row in range(len(split))}
    assert prepared == set(rows)
