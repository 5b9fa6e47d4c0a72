"""Labelled corpora: what is read, dropped and refused, the prepared folder, and its batches."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from attnlab.data.corpus import SentenceCleaning
from attnlab.data.hub import LabelledCorpus
from attnlab.data.labels import with_typed_labels
from attnlab.data.prepare import prepare
from attnlab.data.prepared import LabelledData, PreparedData, read_labels
from attnlab.data.row_kinds import Sentences
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError

Rows = list[dict[str, Any]]
ROWS: Rows = [
    {"text": "a good film", "label": 1},
    {"text": "a bad one !", "label": 0},
    {"text": "good", "label": 1},
    {"text": "안녕 bad", "label": 0},
]
CORPORA = Path(__file__).resolve().parents[3] / "shared" / "data"


def corpus_of(path: Path | str | None, **changed: Any) -> LabelledCorpus:
    values: dict[str, Any] = {
        "dataset": None,
        "path": None if path is None else str(path),
        "name": None,
        "revision": None,
        "splits": {"train": "train", "validation": "validation", "test": "test"},
        "text": "text",
        "label": "label",
        "label_names": None,
        "seed": 1,
        "limit": None,
        "columns": None,
        "separator": None,
        "encoding": None,
        "cleaning": SentenceCleaning(),
        "tokenizer": WordTrainer(min_frequency=1),
    }
    return LabelledCorpus(**(values | changed))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a folder of JSON lines in the layout of a dataset repository."""

    def rows(train: Rows = ROWS, validation: Rows = ROWS[:2], test: Rows = ROWS[2:]) -> Path:
        folder = tmp_path / "corpus"
        folder.mkdir()
        for split, content in (("train", train), ("validation", validation), ("test", test)):
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in content]
            (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
        return folder

    return rows


def prepared(tmp_path: Path, corpus: LabelledCorpus) -> LabelledData:
    prepare(corpus, Sentences, tmp_path / "data")
    return LabelledData(tmp_path / "data")


def refusal(tmp_path: Path, corpus: LabelledCorpus) -> str:
    with pytest.raises(ExperimentError) as caught:
        prepare(corpus, Sentences, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    assert len(caught.value.problems) == 1
    return str(caught.value)


def test_labelled_folder_reads_back_as_the_corpus(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    data = prepared(tmp_path, corpus_of(write(), label_names=["negative", "positive"]))
    assert sorted(os.listdir(data.folder)) == LabelledData.files()
    assert data.labels == read_labels(data.folder / "data.json") == ["negative", "positive"]
    assert data.sizes == {"train": 4, "validation": 2, "test": 2}
    train = data.split("train")
    assert [train.source_text(row) for row in range(4)] == [row["text"] for row in ROWS]
    assert train.labels.tolist() == [1, 0, 1, 0]
    assert data.tokenizer.decode(train.ids[3]) == "안녕 bad"
    assert train.source_lengths.tolist() == [3, 4, 1, 2]
    assert not train.target_lengths.any()
    stats = data.stats["splits"]["train"]
    assert stats["labels"] == {"negative": 2, "positive": 2}
    assert stats["text"]["length_histogram"] == [[1, 1], [2, 1], [3, 1], [4, 1]]
    assert data.stats["vocabulary"]["text"] == data.tokenizer.size


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([3, 11, 2, 3], ["2", "3", "11"]),
        (["우울", "spam", "ham ", "ham"], ["ham", "spam", "우울"]),
        ([True, False, True, True], ["false", "true"]),
        ([0, 1, None, 1], ["0", "1"]),
        ([0.5, 1.0, 1.0, 0.5], ["0.5", "1.0"]),
        (["01", "02", "01", "02"], ["01", "02"]),
        (["0", "1", "unsure", "1"], ["0", "1", "unsure"]),
        ([-1, 1, -1, 1], ["-1", "1"]),
        (["e\u0301", "\u00e9", "x", "x"], ["x", "\u00e9"]),
    ],
    ids=[
        "numbers",
        "text",
        "truth",
        "numbers with a gap",
        "fractions",
        "leading zeros",
        "a late word",
        "signs",
        "two spellings",
    ],
)
def test_classes_are_numbered_by_size_or_alphabetically(
    write: Callable[..., Path], tmp_path: Path, labels: list[Any], names: list[str]
) -> None:
    rows = [{"text": f"word {i}", "label": label} for i, label in enumerate(labels)]
    data = prepared(tmp_path, corpus_of(write(rows, rows[:2], rows[:2])))
    assert data.labels == names
    kept = [label for label in labels if label is not None]
    named = [data.labels[number] for number in data.split("train").labels]
    assert len(named) == len(kept)


def test_class_names_default_to_those_of_the_dataset(tmp_path: Path) -> None:
    features = datasets.Features(
        text=datasets.Value("string"), label=datasets.ClassLabel(names=["no", "yes"])
    )
    folder = tmp_path / "corpus"
    for split in ("train", "validation", "test"):
        rows = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
        rows.to_parquet(folder / f"{split}.parquet")
    assert prepared(tmp_path, corpus_of(folder)).labels == ["no", "yes"]


def test_prepare_counts_every_bad_sentence_by_its_reason(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    rows = [
        *ROWS,
        {"text": "no label", "label": None},
        {"text": None, "label": 1},
        {"text": " \u3000", "label": 0},
        {"text": "x" * 101, "label": 0},
        {"text": "one two three four five", "label": 0},
    ]
    cleaning = SentenceCleaning(max_length=4, max_characters=100)
    long = [{"text": "one two three four five six", "label": 0}]
    data = prepared(tmp_path, corpus_of(write(rows, test=long), cleaning=cleaning))
    stats = data.stats["splits"]
    assert stats["train"]["dropped"] == {
        "no_label": 1, "missing": 1, "empty": 1, "too_many_characters": 1, "too_long": 1,
    }  # fmt: skip
    assert (stats["train"]["rows"], stats["train"]["sentences"]) == (9, 4)
    assert stats["test"]["dropped"] == {}  # the limits in tokens are training's alone


UNFIT = {
    "missing label": (
        {},
        {"label": "sentiment"},
        "data.label: there is no column 'sentiment' in split 'train'; the",
    ),
    "missing text": (
        {},
        {"text": "question"},
        "data.text: there is no column 'question' in split 'train'; the",
    ),
    "unseen label": (
        {"test": [{"text": "new", "label": 2}]},
        {},
        "data.label: the test split has the label 2, "
        "which no sentence of the training split has (it has [0, 1])",
    ),
    "one class": (
        {"train": ROWS[:1], "validation": ROWS[:1], "test": ROWS[:1]},
        {},
        "every label of the training",
    ),
    "too many names": (
        {},
        {"label_names": ["a", "b", "c"]},
        "data.label_names has 3 names for the labels 0 to 2, but",
    ),
    "no label at all": (
        {"train": [{"text": "x", "label": None}, {"text": "", "label": 1}]},
        {},
        "nothing is left of the train split; "
        "2 rows were dropped (1 empty, the first train.jsonl, line 2: ''; ",
    ),
}


@pytest.mark.parametrize(("splits", "changed", "said"), UNFIT.values(), ids=UNFIT)
def test_labelled_data_unfit_for_a_classifier_are_refused(
    write: Callable[..., Path],
    tmp_path: Path,
    splits: dict[str, Rows],
    changed: dict[str, Any],
    said: str,
) -> None:
    assert said in refusal(tmp_path, corpus_of(write(**splits), **changed))


def test_labelled_folder_opened_as_pairs_is_refused(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    data = prepared(tmp_path, corpus_of(write()))
    with pytest.raises(
        ExperimentError,
        match=r"lacks prepared data: source_tokenizer\.json, target_tokenizer\.json",
    ):
        PreparedData(data.folder)
    (data.folder / "tokenizer.json").unlink()
    with pytest.raises(ExperimentError, match=r"lacks prepared data: tokenizer\.json missing"):
        LabelledData(data.folder)
    (data.folder / "data.json").write_text('{"format": 2}')
    with pytest.raises(ExperimentError, match=r"data\.json is damaged \(labels: Field required\)"):
        read_labels(data.folder / "data.json")


@pytest.mark.parametrize(
    ("name", "text", "sizes", "labels"),
    [
        ("rt_polarity", "text", [8_678, 1_000, 1_000], 2),
        ("korean_chatbot", "question", [9_823, 1_000, 1_000], 3),
    ],
)
def test_prepare_real_labelled_corpora(
    tmp_path: Path, name: str, text: str, sizes: list[int], labels: int
) -> None:
    if not (CORPORA / name).is_dir():
        pytest.skip(f"there is no copy of {name} in {CORPORA}")
    data = prepared(tmp_path, corpus_of(CORPORA / name, text=text))
    assert list(data.sizes.values()) == sizes
    assert data.labels == [str(number) for number in range(labels)]
    assert all(not split["dropped"] for split in data.stats["splits"].values())


def labelled(*labels: str) -> dict[str, datasets.Dataset]:
    texts = [f"film {number}" for number in range(len(labels))]
    return {"train": datasets.Dataset.from_dict({"text": texts, "label": list(labels)})}


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["1", "2", "3"], "'1' is the name of a label and also the number of '2'"),
        (["-1", "0", "1"], "'-1' is the name of a label and also no label"),
    ],
)
def test_name_that_also_means_another_label_is_refused(names: list[str], sentence: str) -> None:
    with pytest.raises(ExperimentError, match=sentence):
        with_typed_labels(labelled(*names), names)


def test_names_that_are_their_own_numbers_are_read() -> None:
    typed = with_typed_labels(labelled("0", "1", "2", "1"), ["0", "1", "2"])
    assert typed["train"]["label"] == [0, 1, 2, 1]
    named = with_typed_labels(labelled("good", "1", "bad"), ["bad", "good"])
    assert named["train"]["label"] == [1, 1, 0]


def test_typed_column_of_classes_holds_numbers_though_names_are_numbers_too(tmp_path: Path) -> None:
    names = datasets.ClassLabel(names=["1", "2", "3"])
    features = datasets.Features({"text": datasets.Value("string"), "label": names})
    rows = {"text": ["a", "b", "c"], "label": [0, 1, 2]}
    dataset = datasets.Dataset.from_dict(rows, features=features)
    splits = {"train": dataset, "validation": dataset, "test": dataset}
    datasets.DatasetDict(splits).save_to_disk(str(tmp_path / "saved"))
    assert corpus_of(tmp_path / "saved").load()["train"]["label"] == [0, 1, 2]
