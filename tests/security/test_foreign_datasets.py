"""Downloaded datasets and tokenisers run no code: no script, no pickle, no other reader."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from contextlib import suppress
from pathlib import Path

import datasets
import pytest
from hostile import Payload

from attnlab.data.raw.loading import RawData
from attnlab.data.raw.rows import Format
from attnlab.data.tokenizer import Tokenizer
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError

COLUMNS = {"source": "de", "target": "en"}
ROW = json.dumps({"de": "ein Hund", "en": "a dog"}) + "\n"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    folder.mkdir()
    return folder


def load(path: Path) -> datasets.Dataset:
    return RawData(None, path, None, None, COLUMNS, Format()).read("train")


def test_dataset_folder_with_a_script_runs_nothing(theirs: Path, mark: Path) -> None:
    (theirs / "train.jsonl").write_text(ROW)
    for name in ("theirs.py", "dataset.py", "__init__.py", "conftest.py"):
        (theirs / name).write_text(f"import os\nos.mkdir({str(mark)!r})\n")
    with pytest.raises(
        ExperimentError, match=r"Dataset scripts are no longer supported, but found theirs\.py"
    ):
        load(theirs)
    (theirs / "theirs.py").unlink()
    assert (load(theirs)["source"][0], load(theirs)["target"][0]) == ("ein Hund", "a dog")
    assert not mark.exists()


@pytest.mark.parametrize("file", ["README.md", ".huggingface.yaml"])
def test_dataset_card_with_python_objects_runs_nothing(theirs: Path, mark: Path, file: str) -> None:
    fence = "---\n" if file == "README.md" else ""
    (theirs / "train.jsonl").write_text(ROW)
    (theirs / file).write_text(
        f"{fence}configs: !!python/object/apply:os.mkdir [{str(mark)!r}]\n{fence}"
    )
    with suppress(ExperimentError):
        load(theirs)
    assert not mark.exists()


def pickled(mark: Path) -> bytes:
    return pickle.dumps(Payload(mark))


def tarred(mark: Path) -> bytes:
    import torch

    saved, stream = io.BytesIO(), io.BytesIO()
    torch.save(Payload(mark), saved)
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in {
            "0.pkl": pickled(mark),
            "0.pyd": pickled(mark),
            "0.pth": saved.getvalue(),
        }.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


KINDS = {
    "train.pkl": pickled,
    "train.parquet": pickled,
    "train.json": pickled,
    "train.csv": pickled,
    "train.tar": tarred,
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("alone", [True, False], ids=["file", "folder"])
def test_dataset_with_pickles_is_refused_unread(
    theirs: Path, mark: Path, name: str, alone: bool
) -> None:
    (theirs / name).write_bytes(KINDS[name](mark))
    with pytest.raises(ExperimentError, match=r"^data\.path: "):
        load(theirs / name if alone else theirs)
    assert not mark.exists()


def test_dataset_folder_of_an_unknown_file_kind_is_refused(theirs: Path) -> None:
    (theirs / "train.xml").write_text("<a>b</a>")
    with pytest.raises(
        ExperimentError, match=r"data files that can be read; it holds train\.xml; known kinds"
    ):
        load(theirs)


def test_hub_dataset_of_an_unknown_file_kind_is_refused(
    theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (theirs / "a.txt").write_text("a")
    builder = datasets.load_dataset_builder(
        "text", data_files=str(theirs / "a.txt"), cache_dir=str(theirs / "cache")
    )
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_, **__: builder)
    with pytest.raises(
        ExperimentError, match=r"nobody/theirs holds files of the kind text; known kinds are: json,"
    ):
        RawData("nobody/theirs", None, None, None, COLUMNS, Format())


def test_tokenizer_with_code_beside_it_runs_nothing(theirs: Path, mark: Path) -> None:
    WordTrainer(min_frequency=1).train(["a dog"]).save(theirs / "tokenizer.json")
    (theirs / "tokenization.py").write_text(f"import os\nos.mkdir({str(mark)!r})\n")
    (theirs / "tokenizer_config.json").write_text(
        '{"auto_map": {"AutoTokenizer": ["tokenization.Tokenizer", null]}}'
    )
    assert Tokenizer.load(theirs / "tokenizer.json").size == 6
    (theirs / "tokenizer.json").write_bytes(pickled(mark))
    with pytest.raises(ExperimentError, match=r"the tokeniser .*tokenizer\.json cannot be read"):
        Tokenizer.load(theirs / "tokenizer.json")
    assert not mark.exists()
