"""Finding the place of a fault in a data file."""

from __future__ import annotations

import errno
import gzip
from pathlib import Path

import pytest

from attnlab.data.file_faults import data_files, find_fault

GOOD = '{"de": "gut", "en": "good"}\n'

FAULTS = {
    "latin-1": ("a.csv", "de,en\nschön,fine\n".encode("latin-1"), "is not UTF-8 in line 2, byte 4; save it as UTF-8"),
    "no JSON": ("a.jsonl", f"{GOOD}\n{{x}}\n", "has a fault in line 3: it is no JSON"),
    "no object": (
        "a.ndjson",
        f"{GOOD}[1]\n",
        "has a fault in line 2: it is no JSON object with the columns as its keys",
    ),
    "lines in .json": ("a.json", f"{GOOD}{{x}}\n", "has a fault in line 2: it is no JSON"),
    "no array": ("a.json", "[\n{]\n", "is no JSON: "),
    "row of an array": ("a.json", f"[{GOOD},\n3]\n", "has a fault in row 2: it is no JSON object"),
    "too many fields": ("a.csv", "de,en\na,b\na,b,c\n", "has 3 fields in line 3, but 2 columns"),
    "open quotation": ("a.csv", 'de,en\n"a"x,b\n', "has a fault in line 2: "),
    "too many tabs": ("a.tsv", 'de\ten\n"a\tb\tc\n', "has 3 fields in line 2, but 2 columns"),
    "no parquet": ("a.parquet", "de,en\n", "is no complete parquet file: "),
    "no gzip": ("a.csv.gz", "de,en\n", "is no complete gzip file"),
    "half a gzip": ("a.csv.gz", gzip.compress(b"de,en\na,b\n")[:-9], "is no complete gzip file"),
    "plain text": ("a.de", b"gut\n\xff\n", "is not UTF-8 in line 2, byte 1; save it as UTF-8"),
}


def write(file: Path, content: str | bytes) -> None:
    file.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(("name", "content", "fault"), FAULTS.values(), ids=FAULTS)
def test_find_fault_reports_the_fault_with_its_place(
    tmp_path: Path, name: str, content: str | bytes, fault: str
) -> None:
    write(tmp_path / name, content)
    for place in (tmp_path / name, tmp_path):
        found = find_fault(place)
        assert found is not None
        assert found.startswith(f"{tmp_path / name} {fault}")
        assert "\n" not in found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", f"\ufeff{GOOD}\n{GOOD}"),
        ("a.json", f"[{GOOD}, {GOOD}]"),
        ("a.json", GOOD * 2),
        ("a.csv", 'de,en\n"a\nb",c\nd\n'),
        ("a.tsv", 'de\ten\n"a\tb\n'),
        ("a.csv.gz", gzip.compress(b"de,en\na,b\n")),
        ("a.CSV", "de,en\n"),
        ("a.en", "one\n"),
    ],
    ids=["lines", "array", "lines in .json", "csv", "tsv", "gzip", "capitals", "text"],
)
def test_find_fault_of_a_good_file_returns_none(tmp_path: Path, name: str, content: str | bytes) -> None:
    write(tmp_path / name, content)
    assert find_fault(tmp_path / name) is None
    assert find_fault(tmp_path) is None


def test_find_fault_of_a_folder_reports_the_first_faulty_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path / "a.jsonl", GOOD)
    write(tmp_path / "inner" / "b.jsonl", "{")
    write(tmp_path / "z.jsonl", "[")
    write(tmp_path / ".hidden.jsonl", "{")
    write(tmp_path / "README.md", b"\xff")
    assert [file.name for file in data_files(tmp_path)] == ["a.jsonl", "b.jsonl", "z.jsonl"]
    assert str(find_fault(tmp_path)).startswith(f"{tmp_path / 'inner' / 'b.jsonl'} has a fault in line 1")


def test_find_fault_of_an_unreadable_file_reports_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Path, *_: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    write(tmp_path / "a.csv", "de,en\n")
    monkeypatch.setattr(Path, "open", broken)
    assert find_fault(tmp_path) == f"{tmp_path / 'a.csv'} cannot be read: Input/output error"


def test_find_fault_of_a_missing_path_returns_none(tmp_path: Path) -> None:
    assert find_fault(tmp_path / "nowhere") is None
