import csv
import gzip
import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnlab.data.hub import raw_data_path
from attnlab.errors import ExperimentError

FROM_TRAIN = {"train": "train", "validation": 0.25, "test": 0.25}
ROWS = [{"de": f"Satz {i}, „gut“", "en": f'sentence {i}, "good"'} for i in range(8)]


LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def as_csv(path):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("de", "en"), *(row.values() for row in ROWS)])


def as_tsv(path):
    path.write_text(
        "".join("\t".join(row) + "\n" for row in [("de", "en"), *(r.values() for r in ROWS)]),
        "utf-8",
    )


WRITE = {
    "train.json": lambda path: path.write_text(
        json.dumps(ROWS, ensure_ascii=False), encoding="utf-8"
    ),
    "train.jsonl": lambda path: path.write_bytes(LINES),
    "train.jsonl.gz": lambda path: path.write_bytes(gzip.compress(LINES)),
    "train.csv": as_csv,
    "train.tsv": as_tsv,
    "train.parquet": lambda path: pq.write_table(pa.Table.from_pylist(ROWS), path),
}


def pairs_of(splits):
    return sorted(
        pair
        for split in splits.values()
        for pair in zip(split["source"], split["target"], strict=True)
    )


EXPECTED = sorted((row["de"], row["en"]) for row in ROWS)


@pytest.mark.parametrize("in_folder", [True, False], ids=["folder", "file"])
@pytest.mark.parametrize("name", WRITE)
def test_hub_corpus_reads_the_same_pairs_from_every_kind_of_file(
    tmp_path, hub_corpus, name, in_folder
):
    folder = tmp_path / "corpus"
    folder.mkdir()
    WRITE[name](folder / name)
    splits = hub_corpus(folder if in_folder else folder / name, splits=FROM_TRAIN).load()
    assert [len(splits[split]) for split in ("train", "validation", "test")] == [4, 2, 2]
    assert splits["train"].column_names == ["source", "target", "place", "fault"]
    assert pairs_of(splits) == EXPECTED


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_hub_corpus_joins_parallel_text_files(tmp_path, hub_corpus, suffix):
    opened = gzip.open if suffix else open
    for split, rows in (("train", ROWS[:6]), ("validation", ROWS[6:7]), ("test", ROWS[7:])):
        for side in ("de", "en"):
            with opened(tmp_path / f"{split}.{side}{suffix}", "wt", encoding="utf-8") as file:
                file.writelines(row[side] + "\n" for row in rows)
    splits = hub_corpus(tmp_path).load()
    assert pairs_of({"test": splits["test"]}) == [(ROWS[7]["de"], ROWS[7]["en"])]
    assert pairs_of(splits) == EXPECTED


def test_hub_corpus_of_unequal_parallel_files_is_refused(tmp_path, hub_corpus):
    (tmp_path / "train.de").write_text("a\nb\n")
    (tmp_path / "train.en").write_text("a\n")
    assert "has 2 lines, but" in refusal(hub_corpus(tmp_path, splits=FROM_TRAIN))


def test_hub_corpus_reads_none_and_na_as_words(tmp_path, hub_corpus):
    (tmp_path / "train.csv").write_text("de,en\nNone,NA\nnull,nan\nx,y\nz,\n")
    pairs = pairs_of(hub_corpus(tmp_path, splits=FROM_TRAIN).load())
    assert pairs == [("None", "NA"), ("null", "nan"), ("x", "y"), ("z", "")]


def test_hub_corpus_reads_nested_columns(tmp_path, hub_corpus):
    lines = [json.dumps({"translation": row, "id": 1}) + "\n" for row in ROWS]
    (tmp_path / "train.jsonl").write_text("".join(lines))
    corpus = hub_corpus(
        tmp_path, source="translation.de", target="translation.en", splits=FROM_TRAIN
    )
    assert pairs_of(corpus.load()) == EXPECTED
    assert (corpus.source_language, corpus.target_language) == ("de", "en")
    wrong = hub_corpus(
        tmp_path, source="translation.fr", splits=FROM_TRAIN, target="translation.en"
    )
    assert (
        "no column 'translation.fr' in split 'train'; the columns of train.jsonl are: "
        in refusal(wrong)
    )
    assert "translation.de, translation.en, id" in refusal(wrong)


def test_hub_corpus_columns_can_swap_names(tmp_path, hub_corpus):
    (tmp_path / "train.jsonl").write_text('{"source": "s", "target": "t"}\n' * 4)
    splits = hub_corpus(tmp_path, source="target", target="source", splits=FROM_TRAIN).load()
    assert pairs_of({"test": splits["test"]}) == [("t", "s")]


def test_hub_corpus_fractions_are_drawn_from_one_split(hub_folder, hub_corpus):
    mixed = hub_corpus(hub_folder, splits={"train": "train", "validation": 0.25, "test": "test"})
    assert [len(mixed.load()[s]) for s in ("train", "validation", "test")] == [15, 5, 3]
    everything = {"train": 0.5, "validation": 0.25, "test": 0.25}
    assert [len(s) for s in hub_corpus(hub_folder, splits=everything).load().values()] == [10, 5, 5]
    again, other = (hub_corpus(hub_folder, splits=everything, seed=seed).load() for seed in (1, 2))
    assert (
        hub_corpus(hub_folder, splits=everything).load()["train"]["source"]
        == again["train"]["source"]
    )
    assert again["train"]["source"] != other["train"]["source"]


def test_hub_corpus_relative_path_starts_at_the_project(
    hub_folder, hub_corpus, tmp_path, monkeypatch
):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert len(hub_corpus("corpus").load()["train"]) == 20
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert raw_data_path("corpus") == tmp_path / "elsewhere" / "corpus"
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    assert raw_data_path("corpus") == tmp_path / "corpus"
    assert len(hub_corpus("corpus").load()["train"]) == 20


def test_hub_corpus_reads_a_changed_file_again(hub_folder, hub_corpus):
    hub_corpus(hub_folder).load()
    times = os.stat(hub_folder / "test.jsonl.gz")
    with gzip.open(hub_folder / "test.jsonl.gz", "wt") as file:
        file.write('{"de": "neu", "en": "new"}\n')
    os.utime(hub_folder / "test.jsonl.gz", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert pairs_of({"test": hub_corpus(hub_folder).load()["test"]}) == [("neu", "new")]


def refusal(corpus) -> str:
    with pytest.raises(ExperimentError) as error:
        corpus.load()
    (sentence,) = error.value.problems
    assert sentence.startswith("data.")
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "train.jsonl",
            b'{"de": "x",\n',
            "train.jsonl, line 2: this is no JSON (Expecting property name",
        ),
        ("train.jsonl", b"", "has no rows"),
        ("train.jsonl.gz", b"not gzip", "Not a gzipped file"),
        (
            "train.csv",
            b"de,en\nx,\xe4\n",
            "train.csv, line 2: the byte 0xe4 is not UTF-8; name the encoding",
        ),
        ("train.csv", b"de,en\nx,y\nx,y,z\n", "train.csv, line 3: 3 fields, the header has 2"),
        ("train.parquet", b"PAR1 but not really", "magic bytes"),
        ("train.de", b"\xff\n", "train.de, line 1: the byte 0xff is not UTF-8"),
        ("README.md", b"hello", "doesn't contain any data files"),
    ],
)
def test_hub_corpus_with_a_faulty_file_is_refused_by_its_name(
    tmp_path, hub_corpus, name, content, message
):
    (tmp_path / name).write_bytes(content)
    if name == "train.de":
        (tmp_path / "train.en").write_bytes(b"x\n")
    sentence = refusal(hub_corpus(tmp_path, splits=FROM_TRAIN))
    assert message in sentence
    assert str(tmp_path) in sentence


def test_hub_corpus_with_a_missing_part_is_refused_with_the_available_ones(hub_folder, hub_corpus):
    assert "there is no" in refusal(hub_corpus(hub_folder / "lost"))
    wrong_column = refusal(hub_corpus(hub_folder, source="xx"))
    assert wrong_column == (
        "data.source: there is no column 'xx' in split 'train'; "
        "the columns of train.jsonl.gz are: de, en"
    )
    wrong_split = refusal(hub_corpus(hub_folder, splits=FROM_TRAIN | {"test": "tst"}))
    assert (
        "data.splits.test: there is no split 'tst'; the splits are: train, validation, test"
        in wrong_split
    )
    assert "BuilderConfig 'nobody' not found" in refusal(hub_corpus(hub_folder, name="nobody"))
    (hub_folder / "notes.docx").write_bytes(b"")
    assert "is no file of a known kind" in refusal(hub_corpus(hub_folder / "notes.docx"))
    assert "data.path and data.dataset are both null" in refusal(hub_corpus(None))
    shutil.rmtree(hub_folder)
    hub_folder.mkdir()
    assert "doesn't contain any data files" in refusal(hub_corpus(hub_folder))


def test_hub_dataset_that_cannot_be_loaded_is_refused(hub_corpus, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    sentence = refusal(hub_corpus(None, dataset="no/such"))
    assert sentence.startswith(
        "data.dataset: no/such cannot be loaded: Couldn't reach 'no/such' on the Hub"
    )
    (tmp_path / "no" / "such").mkdir(parents=True)
    assert "lies on this machine" in refusal(hub_corpus(None, dataset="no/such"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"splits": {"train": "train"}}, "splits must give train, validation, test, got train"),
        (
            {"splits": {"train": 0.9, "validation": 0.9, "test": 0.1}},
            "splits must add up to at most 1, got 1.9",
        ),
    ],
)
def test_hub_corpus_with_an_invalid_value_is_refused_by_its_name(hub_corpus, changed, message):
    with pytest.raises(ValueError, match=message):
        hub_corpus(None, **changed)
