"""The place of a fault in a data file: the file, the line, and what is wrong there."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

READERS = {"json": "json", "jsonl": "json", "ndjson": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet"}
"""Suffix -> module of `datasets`."""


def kind_of(file: Path) -> str:
    """The suffix without `.gz`, in small letters."""
    return file.name.removesuffix(".gz").rsplit(".", 1)[-1].lower()


def data_files(path: Path) -> list[Path]:
    """The file itself, or a folder's files of a known kind."""
    if path.is_file():
        return [path]
    return sorted(f for f in path.rglob("*") if kind_of(f) in READERS and f.is_file() and not f.name.startswith("."))


def find_fault(path: Path) -> str | None:
    """What is wrong with the first faulty file, and in which line; None where nothing is found."""
    files = data_files(path) or (sorted(f for f in path.iterdir() if f.is_file()) if path.is_dir() else [])
    for file in files:
        try:
            fault = _fault_in(file)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            fault = "is no complete gzip file"
        except OSError as error:
            fault = f"cannot be read: {error.strerror}"
        if fault is not None:
            return f"{file} {fault}"
    return None


def _fault_in(file: Path) -> str | None:
    kind = kind_of(file)
    if kind == "parquet":
        return _parquet_fault(file)
    lines: list[str] = []
    for number, line in enumerate(_lines(file), start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            return f"is not UTF-8 in line {number}, byte {error.start + 1}; save it as UTF-8"
        if kind in ("jsonl", "ndjson") and (fault := _json_fault(text)):
            return f"has a fault in line {number}: {fault}"
        if kind in ("json", "csv", "tsv"):
            lines.append(text)
    if kind == "json":
        return _json_file_fault(lines)
    return _table_fault(lines, kind) if kind in ("csv", "tsv") else None


def _lines(file: Path) -> Iterator[bytes]:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
        yield from opened


def _json_fault(text: str) -> str | None:
    if not text.strip():
        return None
    try:
        value = json.loads(text.rstrip())
    except json.JSONDecodeError as error:
        return f"it is no JSON ({error.msg}, column {error.colno})"
    if not isinstance(value, dict):
        return "it is no JSON object with the columns as its keys"
    return None


def _json_file_fault(lines: list[str]) -> str | None:
    place = "line"
    if "".join(lines).lstrip().startswith("["):
        try:
            rows = json.loads("".join(lines))
        except ValueError as error:
            return f"is no JSON: {error}"
        place, lines = "row", [json.dumps(row) for row in rows]
    for number, line in enumerate(lines, start=1):
        if fault := _json_fault(line):
            return f"has a fault in {place} {number}: {fault}"
    return None


def _table_fault(lines: list[str], kind: str) -> str | None:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            return f"has a NUL character in line {number}; save it as text in UTF-8"
    reader = csv.reader(lines, "excel-tab", quoting=csv.QUOTE_NONE) if kind == "tsv" else csv.reader(lines, strict=True)
    columns = None
    try:
        for row in reader:
            columns = columns or len(row)
            if len(row) > columns:
                return f"has {len(row)} fields in line {reader.line_num}, but {columns} columns"
    except csv.Error as error:
        return f"has a fault in line {reader.line_num}: {error}"
    return None


def _parquet_fault(file: Path) -> str | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.read_table(file).validate(full=True)
    except pa.ArrowException as error:
        return f"is no complete parquet file: {str(error).splitlines()[0]}"
    return None
