"""A dataset from somebody else: no script, no pickle, no way out of its folder."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attnlab.data.dataset_folder import check_hub_builder
from hostile import Payload

from attnlab.data.hub_loading import load_splits
from attnlab.errors import ExperimentError

ROW = json.dumps({"de": "ein Hund", "en": "a dog"}) + "\n"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    folder.mkdir()
    return folder


def load(path: Path) -> dict[str, object]:
    return load_splits(None, str(path), None, None, "de", "en")  # type: ignore[return-value]


def test_a_loading_script_does_not_run(theirs: Path, mark: Path) -> None:
    (theirs / "train.jsonl").write_text(ROW)
    for name in ("theirs.py", "dataset.py", "__init__.py", "conftest.py"):
        (theirs / name).write_text(f"import os\nos.mkdir({str(mark)!r})\n")
    with pytest.raises(ExperimentError, match=r"Dataset scripts are no longer supported, but found theirs\.py"):
        load(theirs)
    (theirs / "theirs.py").unlink()
    assert load(theirs)["train"][0] == {"de": "ein Hund", "en": "a dog"}  # type: ignore[index]
    assert not mark.exists()


def pickled(mark: Path) -> bytes:
    return pickle.dumps(Payload(mark))


def tarred(mark: Path) -> bytes:
    import torch

    saved, stream = io.BytesIO(), io.BytesIO()
    torch.save(Payload(mark), saved)
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in {"0.pkl": pickled(mark), "0.pyd": pickled(mark), "0.pth": saved.getvalue()}.items():
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
def test_pickles_are_not_read(theirs: Path, mark: Path, name: str, alone: bool) -> None:
    (theirs / name).write_bytes(KINDS[name](mark))
    with pytest.raises(ExperimentError, match=r"^data\.path: "):
        load(theirs / name if alone else theirs)
    assert not mark.exists()


def test_a_type_of_pyarrow_that_was_a_pickle_stays_unknown(theirs: Path, mark: Path) -> None:
    """Such as pyarrow before 14.0.1 loaded by itself; the column is what it is without it, text."""
    metadata = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": pickled(mark)}
    texts = pa.array(["ein Hund"])
    schema = pa.schema([pa.field("de", pa.string(), metadata=metadata), pa.field("en", pa.string())])
    pq.write_table(pa.table([texts, texts], schema=schema), theirs / "train.parquet")
    assert load(theirs)["train"][0]["de"] == "ein Hund"  # type: ignore[index]
    assert not mark.exists()


OUTSIDE = (
    "../secret.csv",
    "{folder}/secret.csv",
    "~/secret.csv",
    "http://127.0.0.1:9/secret.csv",
    "zip://a.csv::../x.zip",
    "file:{folder}/secret.csv",
    "simplecache::{folder}/secret.csv",
    "C:\\secret.csv",
    "..\\secret.csv",
)


@pytest.mark.parametrize("place", OUTSIDE)
@pytest.mark.parametrize("file", ["README.md", ".huggingface.yaml"])
def test_its_metadata_lead_to_no_other_place(theirs: Path, place: str, file: str) -> None:
    (theirs.parent / "secret.csv").write_text("de,en\nmine,alone\n")
    place = place.format(folder=theirs.parent)
    fence = "---\n" if file == "README.md" else ""
    (theirs / file).write_text(f"{fence}configs:\n- config_name: default\n  data_files:\n  - '{place}'\n{fence}")
    with pytest.raises(ExperimentError, match=r"must name files inside the folder, got"):
        load(theirs)


@pytest.mark.parametrize(
    "metadata",
    [
        "configs: &a [*a]",
        "configs: !!int ''",
        "configs: !!bool x",
        "configs: !!timestamp x",
        "1: 2",
        "configs: [",
        "- 1",
    ],
)
@pytest.mark.parametrize("file", ["README.md", ".huggingface.yaml"])
def test_metadata_that_nobody_can_read_are_a_sentence(theirs: Path, metadata: str, file: str) -> None:
    fence = "---\n" if file == "README.md" else ""
    (theirs / file).write_text(f"{fence}{metadata}\n{fence}")
    with pytest.raises(ExperimentError, match=r"data\.path: "):
        load(theirs)


def test_its_metadata_may_say_how_columns_are_parted(theirs: Path) -> None:
    (theirs / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files: [{split: train, path: 'a*.csv'}]\n  sep: ':'\n---\n"
    )
    (theirs / "a1.csv").write_text("de:en\nein Hund:a dog\n")
    assert load(theirs)["train"][0] == {"de": "ein Hund", "en": "a dog"}  # type: ignore[index]


def test_its_metadata_may_name_its_own_files(theirs: Path) -> None:
    (theirs / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files: parts/*.jsonl\n---\nHello\n"
    )
    (theirs / "parts").mkdir()
    (theirs / "parts" / "one.jsonl").write_text(ROW)
    assert len(load(theirs)["train"]) == 1  # type: ignore[arg-type]


def test_readers_of_other_kinds_stay_shut(theirs: Path) -> None:
    (theirs / "train.xml").write_text("<a>b</a>")
    with pytest.raises(ExperimentError, match=r"holds files of the kind xml; known kinds are: json,"):
        load(theirs)


@pytest.fixture
def on_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """`on_the_hub(reader, files)`: every dataset of the hub is what its metadata lead to, these files."""
    found = datasets.load_dataset_builder

    def put(reader: str, files: list[str]) -> None:
        def builder(*_: object, **__: object) -> datasets.DatasetBuilder:
            return found(reader, data_files={"train": files}, cache_dir=str(tmp_path / "cache"))

        monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: None)
        monkeypatch.setattr(datasets, "load_dataset_builder", builder)

    return put


def test_a_dataset_of_the_hub_leads_to_no_file_of_this_machine(
    theirs: Path, on_the_hub: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = theirs / "secret.csv"
    secret.write_text("de,en\nmine,alone\n")
    on_the_hub("csv", [str(secret)])
    with pytest.raises(ExperimentError, match=r"nobody/theirs lead to '.*secret\.csv', which is not on the hub"):
        load_splits("nobody/theirs", None, None, None, "de", "en")
    # Without the check it would be data.
    monkeypatch.setattr("attnlab.data.hub_loading.check_hub_builder", lambda *_: None)
    assert load_splits("nobody/theirs", None, None, None, "de", "en")["train"][0] == {"de": "mine", "en": "alone"}


def test_hub_dataset_of_an_unknown_file_kind_is_refused(theirs: Path, on_the_hub: Callable[..., None]) -> None:
    (theirs / "a.txt").write_text("a")
    on_the_hub("text", [str(theirs / "a.txt")])
    with pytest.raises(ExperimentError, match=r"nobody/theirs holds files of the kind text; known kinds are: json,"):
        load_splits("nobody/theirs", None, None, None, "de", "en")


@pytest.mark.parametrize(
    ("file", "is_there"),
    {
        "hf://datasets/nobody/theirs@main/a.csv": True,
        "zip://a.csv::hf://datasets/nobody/theirs@main/a.zip": True,
        "zip://a.csv::/home/me/a.zip": False,
        "simplecache::file:///etc/passwd": False,
        "http://127.0.0.1:9/a.csv": False,
        "hf://datasets/nobody/theirs@main/a.zip::/etc/passwd": False,
    }.items(),
)
def test_check_hub_builder_allows_only_files_on_the_hub(theirs: Path, file: str, is_there: bool) -> None:
    (theirs / "a.csv").write_text("a\n")
    builder = datasets.load_dataset_builder("csv", data_files=str(theirs / "a.csv"), cache_dir=str(theirs / "cache"))
    builder.config.data_files = {"train": [file]}
    with nullcontext() if is_there else pytest.raises(ExperimentError, match="which is not on the hub"):
        check_hub_builder("nobody/theirs", builder)


def test_links_of_a_folder_are_followed(theirs: Path) -> None:
    """As SECURITY.md says: data often are links to a cache."""
    (theirs.parent / "cached.jsonl").write_text(ROW)
    (theirs / "train.jsonl").symlink_to(theirs.parent / "cached.jsonl")
    assert len(load(theirs)["train"]) == 1  # type: ignore[arg-type]
