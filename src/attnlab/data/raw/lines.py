"""Lines of a text file: unpacked, decoded, and split at line feeds alone.

Errors name the file and the line.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

import pyarrow as pa

from attnlab.errors import ExperimentError

BYTE_ORDER_MARK = "\ufeff"
PACKED = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of packed files that are read as they are."""

_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF_32_MARKS = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_READ_AT_ONCE = 1 << 16  # bytes
_IN_A_SENTENCE = 2  # carriage returns that the only line of a file may have as text
# Characters of these bytes in UTF-8, which a file in another encoding seldom has by chance.
_CLEARLY_UTF_8 = 3
_BEYOND_ASCII = bytes(range(0x80, 0x100))
# Control characters of ISO 8859, in the place of which Windows has quotation marks and dashes.
_OF_WINDOWS = re.compile("[\x80-\x9f]")


def unpacked_name(name: str) -> str:
    """`train.csv` of `train.csv.gz`."""
    for suffix in PACKED:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return io.BufferedReader(gzip.open(path, "rb"))
    if suffix == ".bz2":
        return bz2.open(path, "rb")
    if suffix == ".xz":
        return lzma.open(path, "rb")
    if suffix == ".zst":
        return io.BufferedReader(pa.CompressedInputStream(str(path), "zstd"))
    return path.open("rb")


def read_lines(path: Path, place: str, encoding: str | None = None) -> Iterator[str]:
    """The lines with their line ends, without a byte order mark before the first.

    A line ends with a line feed, or with a carriage return and a line feed; a carriage return by
    itself is text.

    encoding: None is UTF-8.

    Raises ExperimentError, which begins with `place`, for bytes of another encoding, a packed file
    that is damaged, or a file whose only line ends are carriage returns.
    """
    with faults_of(place):
        if encoding is not None:
            _check_is_not_utf_8(path, place, encoding)
        try:
            with (
                open_bytes(path) as binary,
                io.TextIOWrapper(binary, encoding or "utf-8", newline="\n") as text,
            ):
                first = text.readline().removeprefix(BYTE_ORDER_MARK)
                second = text.readline()
                if not second:
                    _check_line_ends(first, place)
                _check_is_no_other_file(first, place)
                lines: Iterator[str] = chain(filter(None, (first, second)), text)
                if encoding is None:
                    check_is_not_utf_16(first, place, "choose data.encoding=")
                else:
                    lines = _without_windows(lines, place, encoding)
                yield from lines
        except UnicodeError as error:
            raise ExperimentError(_wrong_encoding(path, place, encoding, error)) from error


def _without_windows(lines: Iterator[str], place: str, encoding: str) -> Iterator[str]:
    """The lines of a file; raises ExperimentError where one in ISO 8859 is one of Windows.

    Windows-1252 has quotation marks, dashes and `…` where ISO 8859 has control characters.
    """
    if not codecs.lookup(encoding).name.startswith("iso8859"):
        yield from lines
        return
    for number, line in enumerate(lines, start=1):
        found = _OF_WINDOWS.search(line)
        if found:
            raise ExperimentError(
                f"{place}, line {number}: the byte 0x{ord(found[0]):02x} is a control character in "
                f"{encoding}, and a quotation mark, a dash or another character in Windows-1252; "
                "choose data.encoding=cp1252"
            )
        yield line


def without_end(line: str) -> str:
    """The line without its line end."""
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


@contextmanager
def faults_of(place: str) -> Iterator[None]:
    """Raise the errors of a file that cannot be read as one sentence that begins with `place`."""
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        said = getattr(error, "strerror", None) or str(error)
        reason = said.strip() or type(error).__name__
        first_line = reason.splitlines()[0].rstrip(".")
        raise ExperimentError(f"{place} cannot be read: {first_line}") from error


def _check_is_not_utf_8(path: Path, place: str, encoding: str) -> None:
    """Raise ExperimentError for a file in UTF-8 where the config names another encoding.

    Another one would read it without an error, as other characters.
    """
    name = codecs.lookup(encoding).name
    if name.startswith("utf-8"):
        return
    with open_bytes(path) as file:
        start = file.read(_READ_AT_ONCE)
        if start.startswith((*_UTF_16_MARKS, *_UTF_32_MARKS)):
            return
        is_wide = name.startswith(("utf-16", "utf-32"))
        if is_wide:
            is_utf_8 = _lacks_zeros(start)
        else:
            chunks = chain([start], iter(lambda: file.read(_READ_AT_ONCE), b""))
            is_utf_8 = _bytes_beyond_ascii(chunks) >= _CLEARLY_UTF_8
    if is_utf_8:
        raise ExperimentError(
            f"{place} is written in UTF-8, but data.encoding says {encoding}, for all files; leave "
            f"data.encoding out, and convert the files that are in {encoding}, as `iconv -f "
            f"{encoding} -t utf-8` does"
        )


def _lacks_zeros(start: bytes) -> bool:
    """Whether a start is text without the bytes of 0 that UTF-16 and UTF-32 have in ASCII."""
    try:
        text, _ = codecs.utf_8_decode(start, "strict", False)  # a character may go on behind it
    except UnicodeDecodeError:
        return False
    return "\0" not in text and bool(text.strip())


def _bytes_beyond_ascii(chunks: Iterable[bytes]) -> int:
    """How many bytes of the characters beyond ASCII a text in UTF-8 has; 0 for what is none."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    beyond = 0
    try:
        for chunk in chunks:
            decoder.decode(chunk)
            beyond += len(chunk) - len(chunk.translate(None, _BEYOND_ASCII))
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return 0
    return beyond


def check_is_not_utf_16(first: str, place: str, remedy: str) -> None:
    """Raise ExperimentError where a first line, read as UTF-8, is UTF-16 without a mark.

    remedy: what to do, which the encoding's name ends.
    """
    zeros = [i for i, character in enumerate(first) if character == "\0"]
    if len(first) < 4 or 3 * len(zeros) < len(first):
        return
    name = "utf-16-le" if sum(i % 2 for i in zeros) * 2 > len(zeros) else "utf-16-be"
    raise ExperimentError(
        f"{place} seems to be UTF-16 without a byte order mark, as every other byte is 0; {remedy}"
        f"{name}"
    )


def _check_line_ends(first: str, place: str) -> None:
    """Raise ExperimentError for a file with the line ends of old Macs (carriage returns).

    first: the only line of the file, which may end in a line feed.
    """
    returns = without_end(first).removesuffix("\r").count("\r")
    if returns > (_IN_A_SENTENCE if first.endswith("\n") else 0):
        raise ExperimentError(
            f"{place} has carriage returns in place of line feeds; end its lines with line feeds, "
            "as `tr '\\r' '\\n'` does"
        )


def _check_is_no_other_file(first: str, place: str) -> None:
    """Raise ExperimentError where a download or a checkout left something else than the file."""
    start = first[:200].lower()
    if start.startswith("version https://git-lfs"):
        raise ExperimentError(
            f"{place} is a pointer of Git LFS and not the file itself; fetch it with `git lfs pull`"
        )
    if start.startswith(("<!doctype html", "<html")):
        raise ExperimentError(
            f"{place} is a web page and not the file itself; download the file again"
        )


def _wrong_encoding(path: Path, place: str, encoding: str | None, error: UnicodeError) -> str:
    """The sentence for bytes that cannot be decoded: what the file seems to be, or where they are.

    encoding: that the config gives; None for UTF-8.
    """
    if encoding is not None:
        return (
            f"{place} is not {encoding} throughout ({_reason(error)}); data.encoding must name the "
            "encoding that the file is written in; null is UTF-8"
        )
    with open_bytes(path) as file:
        start = file.read(4)
    if start[:2] == b"\x1f\x8b":
        return f"{place} is packed with gzip; call it {path.name}.gz"
    if start[:2] == b"PK":
        return f"{place} is a zip archive or a file of Excel; unpack it, or save the table as csv"
    if start.startswith((*_UTF_16_MARKS, *_UTF_32_MARKS)):
        name = "utf-32" if start.startswith(_UTF_32_MARKS) else "utf-16"
        return (
            f"{place} is not UTF-8: it begins with the mark of {name.upper()}; choose "
            f"data.encoding={name}"
        )
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as fault:
                return (
                    f"{place}, line {number}: the byte 0x{line[fault.start]:02x} is not UTF-8; "
                    "name the encoding of the file by data.encoding, such as cp949 (Korean "
                    "Windows), cp1252 (Western Windows), or utf-16"
                )
    return (
        f"{place} is not UTF-8 ({_reason(error)}); name the encoding of the file by data.encoding"
    )


def _reason(error: UnicodeError) -> str:
    return error.reason if isinstance(error, UnicodeDecodeError) else str(error)
