"""Downloaded attention maps, sweep records, results and MLflow models.

No pickle runs, and damage is reported in a sentence.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hostile import Payload

from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap, load_maps, save_maps
from attnlab.evaluation.evaluation_files import read_json
from attnlab.runs.sweep_record import SweepFolder, find_sweep


def pickled_array(mark: Path) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([Payload(mark)], dtype=object), allow_pickle=True)
    return stream.getvalue()


@pytest.mark.parametrize("array", ["titles", "0.source_tokens", "0.weights"])
def test_load_maps_with_a_pickled_array_runs_no_code(
    tmp_path: Path, mark: Path, array: str
) -> None:
    save_maps([AttentionMap(["a"], ["b"], np.ones((1, 1)))], tmp_path / "good.npz")
    with (
        zipfile.ZipFile(tmp_path / "good.npz") as good,
        zipfile.ZipFile(tmp_path / "maps.npz", "w") as bad,
    ):
        for name in good.namelist():
            bad.writestr(name, pickled_array(mark) if name == f"{array}.npy" else good.read(name))
    with pytest.raises(
        ExperimentError,
        match=r"holds no attention that can be read .Object arrays cannot be loaded",
    ):
        load_maps(tmp_path / "maps.npz")
    assert not mark.exists()


def test_load_maps_with_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    save_maps([AttentionMap(["a"], ["b"], np.ones((1, 1)))], tmp_path / "maps.npz")
    content = bytearray((tmp_path / "maps.npz").read_bytes())
    for header, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(header) + place] = 99
    (tmp_path / "maps.npz").write_bytes(content)
    with pytest.raises(
        ExperimentError, match=r"holds no attention that can be read .That compression method"
    ):
        load_maps(tmp_path / "maps.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
def test_load_maps_from_a_file_of_another_kind_is_refused(
    tmp_path: Path, mark: Path, content: bytes
) -> None:
    for bytes_ in (content, pickle.dumps(Payload(mark))):
        (tmp_path / "maps.npz").write_bytes(bytes_)
        with pytest.raises(ExperimentError, match="holds no attention that can be read"):
            load_maps(tmp_path / "maps.npz")
    assert not mark.exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"identity": 3}'])
def test_sweep_record_that_is_malformed_is_refused(tmp_path: Path, content: str) -> None:
    folder = SweepFolder(tmp_path / "sweeps" / "aa11")
    (folder.path / "jobs").mkdir(parents=True)
    (folder.path / "sweep.json").write_text(content)
    (folder.path / "jobs" / "0.json").write_text(content)
    for read in (folder.read, folder.jobs, lambda: find_sweep(tmp_path, "last")):
        with pytest.raises(ExperimentError, match=r"\.json is damaged .*; remove it"):
            read()


@pytest.mark.parametrize("content", ["[" * 100_000, "{", "\x00"])
def test_results_that_are_not_json_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "results").write_text(content)
    with pytest.raises(ExperimentError, match="is damaged"):
        read_json(tmp_path / "results", "evaluate")


def test_mlflow_loads_no_pickled_model(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow's own switch, which is on by default; attnlab switches it off."""
    import mlflow.pyfunc
    from mlflow.exceptions import MlflowException

    from attnlab.runs import DEFAULTS

    model = tmp_path / "model"
    model.mkdir()
    (model / "python_model.pkl").write_bytes(pickle.dumps(Payload(mark)))
    (model / "MLmodel").write_text(
        "flavors:\n  python_function:\n    loader_module: mlflow.pyfunc.model\n    python_version: "
        "3.11.0\n"
        "    cloudpickle_version: 3.0.0\n    python_model: python_model.pkl\n    streamable: "
        "false\n"
        "model_uuid: aaaa\nutc_time_created: '2025-01-01 00:00:00.0'\n"
    )
    switch = "MLFLOW_ALLOW_PICKLE_DESERIALIZATION"
    monkeypatch.setenv(switch, DEFAULTS[switch])
    with pytest.raises(MlflowException, match=r"(?i)pickle"):
        mlflow.pyfunc.load_model(str(model))
    assert not mark.exists()
