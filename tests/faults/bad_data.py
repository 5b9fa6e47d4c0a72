"""Bad data: files that no reader should trust, for every stage that reads some."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bad_case import CLASSIFICATION, TRANSLATION, Case, Expected
from bad_texts import TEXTS

ROWS = 30
FRACTIONS = ("data.splits.validation=0.2", "data.splits.test=0.2")
PAIRS = (*(text for text in TRANSLATION if not text.startswith("data")), "data=hub", *FRACTIONS)
LABELLED = (*(text for text in CLASSIFICATION if not text.startswith("data.")), "data=labelled", *FRACTIONS)
PREPARED = "paths.data=prepared"

Make = Callable[[Path], None]


def cases() -> Iterator[Case]:
    """Every case of files that are read as raw data."""
    for maker in (_texts, _bytes, _structures, _columns, _places, _parallel, _splits, _labels, _label_texts):
        yield from maker()


def _prepare(
    kind: str,
    name: str,
    make: Make,
    expected: Expected,
    *more: str,
    said: tuple[str, ...] = (),
    task: tuple[str, ...] = PAIRS,
    script: str = "prepare.py",
    unprivileged: bool = False,
) -> Case:
    place = () if script == "train.py" else (PREPARED,)
    return Case(
        f"{kind}: {name}",
        kind,
        script,
        (*task, *place, *more),
        expected,
        ("data", *said),
        make=make,
        unprivileged=unprivileged,
    )


def _file(name: str, content: bytes | str) -> Make:
    """A folder `data` with one file."""

    def make(folder: Path) -> None:
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def _lines(rows: list[Any], ensure_ascii: bool = False) -> str:
    return "".join(json.dumps(row, ensure_ascii=ensure_ascii) + "\n" for row in rows)


def _pairs(*texts: Any, rows: int = ROWS) -> list[dict[str, Any]]:
    """Ordinary pairs, and each text on both sides."""
    good = [{"source": f"ein Hund {i}", "target": f"a dog {i}"} for i in range(rows)]
    return good + [{"source": text, "target": text} for text in texts for _ in range(8)]


# ----- texts that must work ------------------------------------------------------------------------------------------


def _texts() -> Iterator[Case]:
    whole = "data.path=data/pairs.jsonl"
    for name, text in TEXTS.items():
        make = _file("pairs.jsonl", _lines(_pairs(text)))
        many = ("data.cleaning.max_source_length=50", "data.cleaning.limit_evaluation=true")
        yield _prepare("text through the chain", name, make, "works", whole, *many, script="train.py")
        for tokenizer in ("whitespace", "character", "bpe", "unigram"):
            chosen = f"data/tokenizer={tokenizer}"
            small = ("data.tokenizer.vocabulary_size=300",) if tokenizer in ("bpe", "unigram") else ()
            # A unigram model of a small text may not be learnt, and says so.
            expected: Expected = "either" if tokenizer == "unigram" else "works"
            yield _prepare("text by a tokeniser", f"{name}, {tokenizer}", make, expected, whole, chosen, *small)
        kept = ("data.cleaning.whitespace=keep", "data.cleaning.unicode=none")
        yield _prepare("text as it is", name, make, "works", whole, *kept)
        escaped = _file("pairs.json", json.dumps(_pairs(text), ensure_ascii=True))
        yield _prepare("text in a json array", name, escaped, "works", "data.path=data/pairs.json")
    surrogate = _file("pairs.jsonl", _lines(_pairs()) + '{"source": "\\ud800", "target": "b"}\n')
    yield _prepare("half a character", "alone", surrogate, "refused", whole, said=("pairs.jsonl", "line 31"))
    million = _file("pairs.jsonl", _lines(_pairs("a " * 1_000_000)[: ROWS + 2]))
    yield _prepare("enormous row", "dropped", million, "works", whole)
    limits = ("data.cleaning.max_characters=null", "data.tokenizer.vocabulary_size=100")
    yield _prepare("enormous row", "kept", million, "works", whole, *limits)


# ----- bytes ---------------------------------------------------------------------------------------------------------


def _bytes() -> Iterator[Case]:
    """Files of each kind in encodings that they should not have, and torn."""
    rows = [{"source": f"ein Bär {i}", "target": f"a bear {i} é"} for i in range(ROWS)]
    as_json = _lines(rows)
    as_csv = "source,target\n" + "".join(f"{row['source']},{row['target']}\n" for row in rows)
    for kind, text in (("jsonl", as_json), ("csv", as_csv), ("tsv", as_csv.replace(",", "\t"))):
        place = f"data.path=data/pairs.{kind}"
        given: dict[str, tuple[bytes, Expected]] = {
            "utf-16": (text.encode("utf-16"), "refused"),
            "utf-16 without a mark": (text.encode("utf-16-le"), "refused"),
            "utf-32": (text.encode("utf-32"), "refused"),
            "latin-1": (text.encode("latin-1"), "refused"),
            "euc-kr": ("source,target\n한국어,말\n".encode("euc-kr"), "refused"),
            "utf-8 with a mark": (text.encode("utf-8-sig"), "works"),
            "carriage returns and line feeds": (text.replace("\n", "\r\n").encode(), "works"),
            "carriage returns": (text.replace("\n", "\r").encode(), "either"),
            "no line end at the end": (text.rstrip("\n").encode(), "works"),
            "torn in a character": (text.encode()[: text.encode().rindex("é".encode()) + 1], "refused"),
            "overlong": (text.encode() + b"\xc0\xaf,x\n", "refused"),
            "nul bytes": (b"\0" * 500, "refused"),
            "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "refused"),
            "empty": (b"", "refused"),
            "empty lines": (b"\n" * 50, "refused"),
            "one space": (b" ", "refused"),
            "a zip": (b"PK\x03\x04" + b"\0" * 60, "refused"),
            "a gzip by another name": (gzip.compress(text.encode()), "either"),
        }
        for name, (content, expected) in given.items():
            made = _file(f"pairs.{kind}", content)
            said = (f"pairs.{kind}",) if expected == "refused" else ()
            yield _prepare("bytes", f"{kind}, {name}", made, expected, place, *_columns_of(kind), said=said)
        packed = gzip.compress(text.encode())
        for name, content in {"whole": packed, "torn": packed[:-20], "no gzip": text.encode(), "empty": b""}.items():
            expected = "works" if name == "whole" else "refused"
            made = _file(f"pairs.{kind}.gz", content)
            said = () if name == "whole" else (f"pairs.{kind}.gz",)
            yield _prepare("bytes", f"{kind}.gz, {name}", made, expected, place + ".gz", said=said)


def _columns_of(kind: str) -> tuple[str, ...]:
    return ()


# ----- structures ----------------------------------------------------------------------------------------------------


def _structures() -> Iterator[Case]:
    good = _lines(_pairs())
    given: dict[str, tuple[str, str, Expected]] = {
        "lists for rows": ("jsonl", '["a", "b"]\n' * 9, "refused"),
        "texts for rows": ("jsonl", '"a"\n' * 9, "refused"),
        "numbers for rows": ("jsonl", "1\n2\n3\n", "refused"),
        "nulls for rows": ("jsonl", "null\n" * 9, "refused"),
        "a broken row": ("jsonl", good + '{"source": "a", \n', "refused"),
        "a row of single quotes": ("jsonl", good + "{'source': 'a', 'target': 'b'}\n", "refused"),
        "two rows in a line": ("jsonl", good + '{"source":"a","target":"b"}{"source":"a","target":"b"}\n', "either"),
        "empty rows": ("jsonl", good + "{}\n" * 9, "works"),
        "the same key twice": ("jsonl", '{"source": "a", "source": "b", "target": "c"}\n' * 20, "either"),
        "other keys in later rows": ("jsonl", good + '{"source": "a", "target": "b", "more": 1}\n', "either"),
        "NaN and Infinity": ("jsonl", good + '{"source": NaN, "target": Infinity}\n', "either"),
        "a number beyond all": ("jsonl", '{"source": 1e999, "target": "a"}\n' * 20, "refused"),
        "comments": ("jsonl", "// rows\n" + good, "refused"),
        "an empty array": ("json", "[]", "refused"),
        "an empty object": ("json", "{}", "refused"),
        "an object of lists": ("json", json.dumps({"source": ["a"] * 20, "target": ["b"] * 20}), "either"),
        "an array of texts": ("json", '["a", "b"]', "refused"),
        "an array that never ends": ("json", "[" + '{"source": "a", "target": "b"},' * 20, "refused"),
        "a torn object": ("json", '{"source": "a"', "refused"),
        "a header alone": ("csv", "source,target\n", "refused"),
        "more fields than columns": ("csv", "source,target\n" + "a,b\n" * 20 + "a,b,c\n", "refused"),
        "fewer fields than columns": ("csv", "source,target\n" + "a,b\n" * 20 + "a\n", "either"),
        "the same column twice": ("csv", "source,source,target\n" + "a,b,c\n" * 20, "either"),
        "a quotation mark that never closes": ("csv", "source,target\n" + "a,b\n" * 20 + '"a,b\n', "refused"),
        "semicolons": ("csv", "source;target\n" + "a;b\n" * 20, "refused"),
        "no header": ("csv", "a b,c d\n" * 20, "refused"),
        "a column without a name": ("csv", ",source,target\n" + "1,a,b\n" * 20, "works"),
        "quoted line ends": ("csv", "source,target\n" + '"a\nb","c\r\nd"\n' * 20, "works"),
        "quotation marks in tsv": ("tsv", "source\ttarget\n" + '"a\tb"\n' * 20, "works"),
        "more fields than columns in tsv": ("tsv", "source\ttarget\n" + "a\tb\n" * 20 + "a\tb\tc\n", "refused"),
    }
    for name, (kind, text, expected) in given.items():
        made = _file(f"pairs.{kind}", text)
        yield _prepare("structure", f"{kind}, {name}", made, expected, f"data.path=data/pairs.{kind}")
    yield from _parquet()


def _parquet() -> Iterator[Case]:
    import datetime

    import pyarrow as pa

    texts, place = ["a b"] * 20, "data.path=data/pairs.parquet"
    columns: dict[str, tuple[Any, Expected]] = {
        "text": (pa.array(texts), "works"),
        "large text": (pa.array(texts, pa.large_string()), "works"),
        "text by number": (pa.array(texts).dictionary_encode(), "works"),
        "bytes": (pa.array([b"a"] * 20, pa.binary()), "refused"),
        "bytes that are no text": (pa.array([b"\xff"] * 20, pa.binary()), "refused"),
        "whole numbers": (pa.array(range(20)), "refused"),
        "fractions": (pa.array([0.5] * 20), "refused"),
        "flags": (pa.array([True] * 20), "refused"),
        "dates": (pa.array([datetime.date(2020, 1, 1)] * 20), "refused"),
        "times": (pa.array([datetime.datetime(2020, 1, 1)] * 20), "refused"),
        "decimals": (pa.array([1] * 20, pa.decimal128(5)), "refused"),
        "lists": (pa.array([["a"]] * 20), "refused"),
        "mappings": (pa.array([{"de": "a"}] * 20), "refused"),
        "nothing": (pa.nulls(20), "refused"),
        "some nothing": (pa.array([*texts[:10], *[None] * 10]), "works"),
    }
    for name, (column, expected) in columns.items():
        yield _prepare("structure", f"parquet, {name}", _table(column), expected, place)
    whole = _parquet_bytes(columns["text"][0])
    torn = {"half": whole[: len(whole) // 2], "without its end": whole[:-8], "with holes": _with_holes(whole)}
    for name, content in {**torn, "empty": b"", "csv": b"source,target\na,b\n"}.items():
        made = _file("pairs.parquet", content)
        yield _prepare("structure", f"parquet, {name}", made, "refused", place, said=("pairs.parquet",))
    yield _prepare("structure", "parquet, no rows", _table(pa.array([], pa.string())), "refused", place)


def _parquet_bytes(column: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"source": column, "target": pa.array(["c d"] * len(column))}), sink)
    return sink.getvalue().to_pybytes()


def _table(column: Any) -> Make:
    return lambda folder: _file("pairs.parquet", _parquet_bytes(column))(folder)


def _with_holes(content: bytes) -> bytes:
    return content[:8] + b"\xff" * 40 + content[48:]


# ----- columns -------------------------------------------------------------------------------------------------------


def _columns() -> Iterator[Case]:
    whole = "data.path=data/pairs.jsonl"
    values: dict[str, tuple[Any, Expected]] = {
        "numbers": (1, "refused"),
        "fractions": (0.5, "refused"),
        "flags": (True, "refused"),
        "nulls": (None, "refused"),
        "lists": (["a"], "refused"),
        "mappings": ({"de": "a"}, "refused"),
        "empty lists": ([], "refused"),
        "empty texts": ("", "refused"),
        "white space": (" \u3000\t", "refused"),
    }
    for name, (value, expected) in values.items():
        made = _file("pairs.jsonl", _lines([{"source": value, "target": "a"}] * 20))
        yield _prepare("column", name, made, expected, whole)
        mixed = _file("pairs.jsonl", _lines([*_pairs(), *[{"source": value, "target": "a"}] * 5]))
        yield _prepare("column", f"texts and {name}", mixed, "either", whole)
    made = _file("pairs.jsonl", _lines([{"translation": {"de": "a b", "en": "c"}}] * 20))
    nested = ("data.source=translation.de", "data.target=translation.en")
    yield _prepare("column", "nested", made, "works", whole, *nested)
    for column in (
        "nowhere",
        "translation",
        "translation.",
        ".de",
        "translation.de.x",
        "..",
        "__class__",
        "translation.fr",
    ):
        pair = (f"data.source='{column}'", "data.target=translation.en")
        yield _prepare("column", f"named {column}", made, "refused", whole, *pair, said=("data.source",))
    for column in ("a\x1b[31mb", "\u202eb", "<b>", "\\0source", "x" * 3_000, "é 🙂", "../x", "${seed}"):
        made = _file("pairs.jsonl", _lines([{column: "a b", "target": "c"}] * 20))
        quoted = column.replace("\\", "\\\\").replace("${", "\\${")
        yield _prepare("column", f"called {column!r}"[:80], made, "either", whole, f"data.source='{quoted}'")
        yield _prepare("column", f"has beside {column!r}"[:80], made, "refused", whole, said=("data.source",))
    both = _file("pairs.jsonl", _lines(_pairs()))
    same = ("data.source=target", "data.target=target")
    yield _prepare("column", "one for both sides", both, "refused", whole, *same)


# ----- places --------------------------------------------------------------------------------------------------------


def _places() -> Iterator[Case]:
    good = _lines(_pairs())

    def link_to_nothing(folder: Path) -> None:
        (folder / "data").symlink_to(folder / "nowhere")

    def file_link_to_nothing(folder: Path) -> None:
        (folder / "data").mkdir()
        (folder / "data" / "train.jsonl").symlink_to(folder / "nowhere")

    def link_to_itself(folder: Path) -> None:
        (folder / "data").symlink_to(folder / "data")

    def folder_in_itself(folder: Path) -> None:
        _file("train.jsonl", good)(folder)
        (folder / "data" / "again").symlink_to(folder / "data")

    def folder_for_a_file(folder: Path) -> None:
        (folder / "data" / "train.jsonl").mkdir(parents=True)

    def nothing_inside(folder: Path) -> None:
        (folder / "data").mkdir()

    def unreadable(folder: Path) -> None:
        _file("train.jsonl", good)(folder)
        (folder / "data" / "train.jsonl").chmod(0)

    def unreadable_folder(folder: Path) -> None:
        _file("train.jsonl", good)(folder)
        (folder / "data").chmod(0)

    def a_script(folder: Path) -> None:
        code = "import datasets\nopen('pwned', 'w')\nclass Data(datasets.GeneratorBasedBuilder): pass\n"
        _file("data.py", code)(folder)

    def a_script_and_rows(folder: Path) -> None:
        a_script(folder)
        _file("train.jsonl", good)(folder)

    def a_card(text: str) -> Make:
        def make(folder: Path) -> None:
            _file("train.jsonl", good)(folder)
            _file("README.md", text)(folder)

        return make

    outside = "---\nconfigs:\n- config_name: default\n  data_files: ../../../../etc/passwd\n---\n"
    code = "---\nconfigs: !!python/object/apply:os.system ['touch pwned']\n---\n"
    given: dict[str, tuple[Make, Expected]] = {
        "a link to nothing": (link_to_nothing, "refused"),
        "a file that links to nothing": (file_link_to_nothing, "refused"),
        "a link to itself": (link_to_itself, "refused"),
        "a folder in itself": (folder_in_itself, "either"),
        "a folder for a file": (folder_for_a_file, "refused"),
        "nothing inside": (nothing_inside, "refused"),
        "unknown kinds": (_file("train.docx", b"PK"), "refused"),
        "two kinds": (_two_kinds, "either"),
        "not to be read": (unreadable, "refused"),
        "a folder not to be read": (unreadable_folder, "refused"),
        "a script": (a_script, "refused"),
        "a script beside rows": (a_script_and_rows, "either"),
        "a card of what lies outside": (a_card(outside), "either"),
        "a card that runs something": (a_card(code), "either"),
        "a card that is no YAML": (a_card("---\na: [\n---\n"), "either"),
        "a card of something else": (a_card("---\nconfigs: 3\ndataset_info: [1]\n---\n"), "either"),
        "a card that is no text": (a_card("---\n\x00\x01\n---\n"), "either"),
    }
    for name, (make, expected) in given.items():
        yield _prepare("place", name, make, expected, "data.path=data", unprivileged="not to be read" in name)
    for path in (
        "nowhere", "/dev/null", "/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/self/environ", "/etc", "~nobody/x",
        "data/../../data/x", "x" * 300, "x/" * 2_500, "é🙂", "a\nb", "\x1b[31m", "http://127.0.0.1:9/x.csv",
        "hf://datasets/x/y", "s3://b/k", "file:///etc/passwd", "*", "data/*", "-", "\udcff",
    ):  # fmt: skip
        yield _prepare("place", f"{path[:40]!r}", _file("a.txt", b""), "refused", f"data.path='{path}'")
    for dataset in (
        "nobody/nothing",
        "../../etc",
        "/etc/passwd",
        "a",
        "a/b/c",
        "é/é",
        "x" * 300 + "/y",
        "data",
        "./data",
    ):
        yield _prepare(
            "place", f"dataset {dataset[:40]!r}", _file("a.txt", b""), "refused", f"data.dataset='{dataset}'"
        )
    for name in ("nowhere", "../x", "é🙂", "\x1b[31m", "x" * 2_000, "a/b"):
        made = _file("train.jsonl", good)
        yield _prepare(
            "place", f"configuration {name[:40]!r}", made, "refused", "data.path=data", f"data.name='{name}'"
        )


def _two_kinds(folder: Path) -> None:
    _file("train.jsonl", _lines(_pairs()))(folder)
    _file("test.csv", "source,target\na,b\n")(folder)


# ----- parallel text files -------------------------------------------------------------------------------------------


def _parallel() -> Iterator[Case]:
    def files(**content: bytes) -> Make:
        def make(folder: Path) -> None:
            for name, text in content.items():
                _file(name.replace("_", "."), text)(folder)

        return make

    lines = b"".join(b"a b %d\n" % i for i in range(ROWS))
    given: dict[str, tuple[Make, Expected]] = {
        "as they should be": (files(train_de=lines, train_en=lines), "works"),
        "fewer lines on one side": (files(train_de=lines, train_en=lines.partition(b"\n")[2]), "refused"),
        "no line end on one side": (files(train_de=lines, train_en=lines[:-1]), "works"),
        "one more empty line": (files(train_de=lines, train_en=lines + b"\n"), "either"),
        "one side empty": (files(train_de=lines, train_en=b""), "refused"),
        "both sides empty": (files(train_de=b"", train_en=b""), "refused"),
        "one side alone": (files(train_de=lines), "refused"),
        "utf-16": (files(train_de=lines.decode().encode("utf-16"), train_en=lines), "refused"),
        "latin-1": (files(train_de=lines + b"\xe9\n", train_en=lines + b"e\n"), "refused"),
        "carriage returns": (files(train_de=lines.replace(b"\n", b"\r\n"), train_en=lines), "works"),
        "a mark at the start": (files(train_de=b"\xef\xbb\xbf" + lines, train_en=lines), "works"),
        "nul bytes": (files(train_de=lines.replace(b"a", b"\0"), train_en=lines), "either"),
        "form feeds within lines": (files(train_de=lines.replace(b"a", b"a\x0cb"), train_en=lines), "either"),
        "separators within lines": (
            files(train_de=lines.replace(b"a", "a\u2028b\x85".encode()), train_en=lines),
            "works",
        ),
        "a folder for one side": (_folder_for_a_side, "refused"),
        "one side torn gzip": (_torn_side, "refused"),
    }
    columns = ("data.path=data", "data.source=de", "data.target=en")
    for name, (make, expected) in given.items():
        yield _prepare("parallel files", name, make, expected, *columns)
    for side in ("[a-z]*", "**", "*", "../train", "é", "d\ne"):
        made = files(train_de=lines, train_en=lines)
        pair = ("data.path=data", f"data.source='{side}'", "data.target=en")
        yield _prepare("parallel files", f"the side {side!r}", made, "refused", *pair)


def _folder_for_a_side(folder: Path) -> None:
    _file("train.en", b"a\n")(folder)
    (folder / "data" / "train.de").mkdir()


def _torn_side(folder: Path) -> None:
    _file("train.en.gz", gzip.compress(b"a\n" * 20))(folder)
    _file("train.de.gz", gzip.compress(b"a\n" * 20)[:-9])(folder)


# ----- splits --------------------------------------------------------------------------------------------------------


def _splits() -> Iterator[Case]:
    whole = "data.path=data/pairs.jsonl"
    for rows in (1, 2, 3, 4):
        made = _file("pairs.jsonl", _lines(_pairs(rows=rows)))
        yield _prepare("splits", f"{rows} rows", made, "refused" if rows < 3 else "either", whole)
    made = _file("pairs.jsonl", _lines(_pairs()))
    for split in (
        "nowhere",
        "train[:10]",
        "train+test",
        "all",
        "'train, test'",
        "0",
        "1",
        "0.5",
        "-0.1",
        "1.5",
        "1e-9",
        "true",
        "null",
        "[a]",
        "nan",
    ):
        yield _prepare("splits", f"test={split}", made, "either", whole, f"data.splits.test={split}", said=("splits",))
        yield _prepare(
            "splits", f"train={split}", made, "either", whole, f"data.splits.train={split}", said=("splits",)
        )
    yield _prepare("splits", "one more", made, "refused", whole, "+data.splits.more=0.1", said=("data.splits",))
    yield _prepare("splits", "one fewer", made, "refused", whole, "~data.splits.test", said=("data.splits",))


# ----- labels --------------------------------------------------------------------------------------------------------


def _labels() -> Iterator[Case]:
    whole = "data.path=data/rows.jsonl"

    def rows(*labels: Any, sentences: int = 40) -> Make:
        return _file(
            "rows.jsonl",
            _lines([{"text": f"a film {i % 7}", "label": labels[i % len(labels)]} for i in range(sentences)]),
        )

    given: dict[str, tuple[Make, Expected]] = {
        "numbers": (rows(0, 1), "works"),
        "whole fractions": (rows(0.0, 1.0), "works"),
        "fractions": (rows(0.5, 1.5), "refused"),
        "huge numbers": (rows(2**62, 2**63 - 1), "works"),
        "numbers beyond 64 bits": (rows(2**64, 1), "either"),
        "numbers beyond the fractions": (rows(1e300, 2e300), "either"),
        "negative": (rows(-1, 1), "works"),
        "flags": (rows(True, False), "works"),
        "nulls": (rows(None), "refused"),
        "some nulls": (rows(0, 1, None), "works"),
        "lists": (rows([0], [1]), "refused"),
        "mappings": (rows({"a": 0}, {"a": 1}), "refused"),
        "empty texts": (rows(""), "refused"),
        "white space": (rows(" ", "\t"), "refused"),
        "one class": (rows("yes"), "refused"),
        "one class and nulls": (rows("yes", None), "refused"),
        "texts and numbers": (rows("yes", 1), "either"),
        "numbers as texts": (rows("0", "1"), "works"),
        "words for nothing": (rows("nan", "null", "None", "NA"), "works"),
        "a class for each sentence": (rows(*range(40)), "refused"),
        "two spellings of one": (rows("e\u0301", "é", "b"), "works"),
        "as long as a page": (rows("x" * 5_000, "y" * 5_000), "either"),
    }
    for name, (make, expected) in given.items():
        yield _prepare("labels", name, make, expected, whole, task=LABELLED)
    header = "text,label\n"
    tables: dict[str, tuple[str, Expected]] = {
        "nan in csv": ("a film,nan\nb film,yes\n" * 20, "either"),
        "nan among numbers in csv": ("a film,nan\nb film,1\nc film,0\n" * 20, "either"),
        "empty in csv": ("a film,\nb film,1\nc film,0\n" * 20, "works"),
        "texts among numbers in csv": ("a film,1\n" * 20 + "b film,two\n" * 20, "either"),
        "dates in csv": ("a film,2020-01-01\nb film,2020-01-02\n" * 20, "either"),
        "flags in csv": ("a film,true\nb film,False\n" * 20, "either"),
        "leading zeros in csv": ("a film,007\nb film,08\n" * 20, "either"),
        "infinite in csv": ("a film,inf\nb film,-inf\n" * 20, "either"),
        "an unread label in the test": ("a film,0\nb film,1\n" * 19 + "c film,2\n", "either"),
    }
    for name, (text, expected) in tables.items():
        yield _prepare(
            "labels", name, _file("rows.csv", header + text), expected, "data.path=data/rows.csv", task=LABELLED
        )
    good = rows(0, 1)
    names: dict[str, Expected] = {
        "[a,b]": "works", "[a]": "refused", "[]": "refused", "[a,a]": "refused", "[a,b,c]": "refused", "a": "refused",
        "[1,2]": "refused", "[a,null]": "refused", "[a,'']": "refused", "{a:1}": "refused", "[a,[b]]": "refused",
        "['<b>','\x1b[31m']": "works",
    }  # fmt: skip
    for text, expected in names.items():
        said = ("label_names",) if expected == "refused" else ()
        named = f"data.label_names={text}"
        yield _prepare("label names", repr(text), good, expected, whole, named, said=said, task=LABELLED)
    for column in ("nowhere", "label", "'text.x'", "1", "null", "[a]", "''"):
        name = f"data.text={column}"
        yield _prepare("label column", name, good, "refused", whole, name, said=("data.text",), task=LABELLED)
    swapped = ("data.text=label", "data.label=text")
    yield _prepare("label column", "swapped", good, "refused", whole, *swapped, task=LABELLED)
    regression = _file("rows.jsonl", _lines([{"text": f"a {i}", "label": i / 7} for i in range(40)]))
    yield _prepare("label column", "grades", regression, "refused", whole, said=("data.label",), task=LABELLED)


def _label_texts() -> Iterator[Case]:
    """Odd sentences and odd names of classes, through the whole chain: pictures and pages have them all."""
    for name, text in TEXTS.items():
        if len(text) < 100:
            rows = [{"text": (f"{text} {i % 5}"), "label": text if i % 2 else "other"} for i in range(40)]
            made = _file("rows.jsonl", _lines(rows))
            place = "data.path=data/rows.jsonl"
            yield _prepare("class by a text", name, made, "works", place, task=LABELLED, script="train.py")
