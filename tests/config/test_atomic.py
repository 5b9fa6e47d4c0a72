"""Atomic files and folders: written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from attnlab.files import atomic_file, atomic_folder


class Interrupted(BaseException):
    """Like KeyboardInterrupt: no Exception."""


def write(path, text):
    """A file, or a folder with one file."""
    (path / "inside" if path.is_dir() else path).write_text(text)


@pytest.mark.parametrize("atomic", [atomic_file, atomic_folder])
def test_atomic_write_appears_only_at_the_end(tmp_path, atomic):
    path = tmp_path / "deep" / "curve.png"
    with atomic(path) as temporary:
        write(temporary, "1")
        assert not path.exists()
        assert path.parent in temporary.parents  # a rename within one file system
        assert temporary.is_dir() or temporary.suffix == ".png"
    assert path.is_dir() or path.read_text() == "1"
    assert os.listdir(path.parent) == ["curve.png"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o044 == 0o044


def test_atomic_folder_replaces_all_of_the_old_one(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "old").write_text("0")
    with atomic_folder(path) as temporary:
        (temporary / "new").write_text("1")
        assert (path / "old").exists()
    assert os.listdir(path) == ["new"]
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("error", [ValueError, Interrupted])
@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("atomic", [atomic_file, atomic_folder])
def test_atomic_write_that_fails_leaves_the_old_content(tmp_path, error, existed, atomic):
    path = tmp_path / "model"
    if existed:
        with atomic(path) as temporary:
            write(temporary, "old")
    with pytest.raises(error), atomic(path) as temporary:  # noqa: PT012
        write(temporary, "half")
        raise error
    assert os.listdir(tmp_path) == (["model"] if existed else [])
    if existed:
        assert (path / "inside" if path.is_dir() else path).read_text() == "old"


@pytest.mark.parametrize(
    "refused", [1, 2], ids=["the old one does not move", "the new one does not move"]
)
def test_atomic_folder_that_cannot_replace_the_old_one_leaves_it_alone(
    tmp_path, monkeypatch, refused
):
    path = tmp_path / "model"
    path.mkdir()
    (path / "old").write_text("0")
    put, calls = os.replace, []

    def busy(source, target):
        calls.append(source)
        if len(calls) == refused:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), source)
        put(source, target)

    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises(OSError, match="busy"), atomic_folder(path) as temporary:
        (temporary / "new").write_text("1")
    assert os.listdir(tmp_path) == ["model"]
    assert os.listdir(path) == ["old"]


@pytest.fixture
def disk(monkeypatch):
    """The names of the files that are synced or renamed, in their order.

    Folders have a slash at the end; a rename is `-> <new name>`.
    """
    seen = []

    def fsync(opened):
        path = Path(os.readlink(f"/proc/self/fd/{opened}"))
        seen.append(path.name + "/" * path.is_dir())

    def replace(source, target):
        seen.append(f"-> {Path(target).name}")
        put(source, target)

    put = os.replace
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return seen


@pytest.mark.skipif(
    not os.path.exists("/proc/self/fd"), reason="which file is synced is read from /proc"
)
def test_atomic_write_syncs_content_before_the_rename(tmp_path, disk):
    with atomic_file(tmp_path / "metrics.json") as temporary:
        temporary.write_text("1")
    assert disk == [temporary.name, "-> metrics.json", f"{tmp_path.name}/"]
    for content in ("old", "new"):
        disk.clear()
        with atomic_folder(tmp_path / "model") as temporary:
            (temporary / "deep").mkdir()
            (temporary / "deep" / "weights").write_text(content)
        assert disk.index("weights") < disk.index("deep/") < disk.index("-> model")
        assert disk.index(f"{temporary.name}/") < disk.index("-> model")
        assert disk[-1] == f"{tmp_path.name}/"
