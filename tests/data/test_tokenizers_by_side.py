"""A tokenizer for each side, and corpora that need it.

An example is pronunciation: it reads characters and writes phones.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose

WORDS = {"한국": "h a n k u k", "학교": "h a k k j o"}


def write(folder: Path, source: str, target: str) -> None:
    folder.mkdir()
    for split in ("train", "validation", "test"):
        rows = [json.dumps({source: word, target: phones}) for word, phones in WORDS.items()]
        (folder / f"{split}.jsonl").write_text("\n".join(rows * 10), encoding="utf-8")


def prepared(folder: Path, *overrides: str) -> PreparedData:
    prepare(compose([*overrides, f"data.path={folder}"]).data, Pairs, folder / "prepared")
    return PreparedData(folder / "prepared")


@pytest.mark.parametrize("form", ["none", "nfd"])
def test_korean_pronunciation_reads_syllables_or_jamo_and_writes_phones(
    tmp_path: Path, form: str
) -> None:
    write(tmp_path / "sigmorphon2020_kor", "word", "phones")
    data = prepared(tmp_path, "data=sigmorphon2020", f"data.tokenizer.normalization={form}")
    split = data.split("test")
    row = [split.source_text(row) for row in range(len(split))].index("한국")
    read = "한국" if form == "none" else unicodedata.normalize("NFD", "한국")
    assert data.source_tokenizer.tokens(split.source[row].tolist()) == list(read)
    assert data.target_tokenizer.tokens(split.target[row].tolist()) == WORDS["한국"].split()
    assert data.target_tokenizer.decode(split.target[row].tolist()) == WORDS["한국"]
    assert not data.info.joint


def test_scan_takes_the_folder_of_its_split_and_validates_on_a_part_of_the_training(
    tmp_path: Path,
) -> None:
    write(tmp_path / "scan_jump", "command", "actions")
    (tmp_path / "scan_jump" / "validation.jsonl").unlink()
    assert prepared(tmp_path, "data=scan", "data.split=jump").sizes == {
        "train": 18,
        "validation": 2,
        "test": 20,
    }
    with pytest.raises(ExperimentError, match=r"data\.path: there is no .*scan_length"):
        prepared(tmp_path, "data=scan", "data.split=length")


SIDES = (
    "data/tokenizer@data.source_tokenizer=character",
    "data/tokenizer@data.target_tokenizer=bpe",
)


@pytest.mark.parametrize("data", ["dates", "copy", "hub"])
def test_every_corpus_of_pairs_takes_a_tokenizer_for_each_side(data: str) -> None:
    path = ("data.path=unread",) if data == "hub" else ()
    corpus = compose([f"data={data}", *SIDES, *path]).data
    assert [type(each).__name__ for each in corpus.by_side.values()] == [
        "CharacterTrainer",
        "BpeTrainer",
    ]
    one = compose([f"data={data}", SIDES[0], *path]).data
    assert one.by_side["target_tokenizer"] is one.tokenizer


def test_joint_vocabulary_of_two_tokenizers_is_refused() -> None:
    with pytest.raises(
        ExperimentError,
        match=r"data\.target_tokenizer: joint is true, one vocabulary for both sides",
    ):
        compose(["data=dates", *SIDES, "data.target_tokenizer.joint=true"])
