"""Where in somebody's files the fault is that a reader gave up at."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

READERS = {
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "csv": "csv",
    "tsv": "csv",
    "parquet": "parquet",
}
"""Suffix -> module of `datasets`."""

_JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(rb"[\[\]{}]")
_HALF = re.compile("[\ud800-\udfff]")


def kind_of(file: Path) -> str:
    return file.name.removesuffix(".gz").rsplit(".", 1)[-1].lower()


def data_files(path: Path) -> list[Path]:
    """The file itself, or a folder's files of a known kind."""
    if path.is_file():
        return [path]
    return sorted(f for f in path.rglob("*") if kind_of(f) in READERS and f.is_file() and not f.name.startswith("."))


def unreadable_at_all(path: Path) -> str | None:
    """What no reader must be given: it would wait for ever, or end the process; None where nothing is found."""
    if not (path.is_file() or path.is_dir()):
        return f"{path} is no file and no folder but a pipe, a device or the like; copy what is in it to a file"
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if not (file.is_file() or file.is_dir()):
            what = "a link to nothing" if file.is_symlink() else "no file and no folder"
            return f"{file} is {what}; take it out of the folder"
    for file in data_files(path):
        if READERS.get(kind_of(file)) == "json" and (line := too_deep(file)):
            return f"{file} is nested too deeply in line {line}; give rows that hold texts, a few levels down at most"
    return None


def too_deep(file: Path, most: int = 200) -> int | None:
    """The line in which JSON nests its brackets beyond `most`: the reader's own recursion would crash the process."""
    depth = 0
    try:
        for number, line in enumerate(_lines(file), start=1):
            if depth == 0 and line.count(b"{") + line.count(b"[") <= most and _ends_flat(line):
                continue
            for match in _BRACKET.finditer(_JSON_TEXT.sub(b"", line)):
                depth += 1 if match[0] in b"[{" else -1
                if depth > most:
                    return number
    except (OSError, EOFError, zlib.error):
        return None  # `find_fault` says so
    return None


def _ends_flat(line: bytes) -> bool:
    """Whether a line with few brackets leaves none of them open, as the rows of a jsonl file do not."""
    return line.rstrip().endswith(b"}") and line.startswith(b"{")


def find_fault(path: Path) -> str | None:
    """What is wrong with the first faulty file, and in which line; None where nothing is found."""
    files = data_files(path) or (sorted(f for f in path.iterdir() if f.is_file()) if path.is_dir() else [])
    for file in files:
        try:
            fault = _fault_in(file)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            fault = "is no whole gzip file"
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
    return _table_fault(lines, "\t" if kind == "tsv" else ",") if kind in ("csv", "tsv") else None


def _lines(file: Path) -> Iterator[bytes]:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
        yield from opened


def _json_fault(text: str) -> str | None:
    if not text.strip():
        return None
    try:
        value = json.loads(text.rstrip())
    except RecursionError:
        return "it is nested too deeply"
    except json.JSONDecodeError as error:
        return f"it is no JSON ({error.msg}, column {error.colno})"
    if not isinstance(value, dict):
        return "it is no JSON object with the columns as its keys"
    if _HALF.search(json.dumps(value, ensure_ascii=False)):
        return "it has half a character (a lone surrogate)"
    return None


def _json_file_fault(lines: list[str]) -> str | None:
    if not "".join(lines).lstrip().startswith("["):
        for number, line in enumerate(lines, start=1):
            if fault := _json_fault(line):
                return f"has a fault in line {number}: {fault}"
        return None
    try:
        rows = json.loads("".join(lines))
    except RecursionError:
        return "is nested too deeply"
    except ValueError as error:
        return f"is no JSON: {error}"
    for number, row in enumerate(rows, start=1):
        if fault := _json_fault(json.dumps(row)):
            return f"has a fault in row {number}: {fault}"
    return None


def _table_fault(lines: list[str], delimiter: str) -> str | None:
    if delimiter == "\t":
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, strict=True)
    columns = None
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            return f"has a NUL character in line {number}; save it as text in UTF-8"
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
        return f"is no whole parquet file: {str(error).splitlines()[0]}"
    return None
