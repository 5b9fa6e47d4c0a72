from __future__ import annotations

import os
from pathlib import Path

import pytest

from attnlab.errors import ExperimentError
from attnlab.files import check_writable


def test_check_writable_of_a_creatable_folder_leaves_no_files(tmp_path):
    check_writable("paths.runs", tmp_path / "a" / "b")
    check_writable("paths.runs", tmp_path)
    assert os.listdir(tmp_path) == []


def test_nothing_is_made_below_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match=r"^paths.runs: .*file/b cannot be written, for .*/file takes no files"):
        check_writable("paths.runs", tmp_path / "file" / "b")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a place in which nobody can write, root neither")
def test_a_place_that_takes_nothing(tmp_path):
    with pytest.raises(ExperimentError, match=r"^paths.runs: .*for /proc takes no files .*; name another place"):
        check_writable("paths.runs", Path("/proc/nowhere/b"))
