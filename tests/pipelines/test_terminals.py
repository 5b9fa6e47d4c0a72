"""The real commands in terminals whose encoding lacks characters.

There is no traceback, and a command that stops prints a sentence.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from entry_points import PIPELINES, TINY, Command, succeeded

PLAIN_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def ended(
    folder: Path, environment: dict[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
    )


@pytest.mark.slow
def test_training_whose_output_cannot_encode_hangul_ends_well(folder: Path) -> None:
    of_name = ("data=copy", "tracking=none", "paths.runs='한글'")
    train = ended(
        folder, {"PYTHONIOENCODING": "ascii"}, str(PIPELINES / "train.py"), *TINY, *of_name
    )
    assert train.returncode == 0, train.stderr
    assert r"\ud55c\uae00" in train.stdout
    (log,) = (folder / "한글" / "plain").rglob("train.log")
    assert "한글" in log.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "script", ["train.py", "compare.py", "deliver.py", "replicate.py", "compose.py", "show.py"]
)
def test_help_in_a_plain_locale_is_shown(folder: Path, script: str) -> None:
    shown = ended(folder, PLAIN_LOCALE, str(PIPELINES / script), "--help")
    assert (shown.returncode, shown.stderr) == (0, "")


def test_argument_that_the_locale_cannot_read_is_refused_with_a_way_out(folder: Path) -> None:
    refused = ended(folder, PLAIN_LOCALE, str(PIPELINES / "train.py"), "paths.runs='한글'")
    assert refused.returncode == 1
    assert r"\ud55c\uae00" in refused.stderr
    assert refused.stderr.endswith("whose encoding is ascii; set LC_ALL=C.UTF-8, or PYTHONUTF8=1\n")


def test_folder_that_the_locale_cannot_read_is_refused_with_a_way_out(folder: Path) -> None:
    refused = ended(folder / "한글", PLAIN_LOCALE, str(PIPELINES / "train.py"), "tracking=none")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert "set LC_ALL=C.UTF-8" in refused.stderr


@pytest.mark.slow
def test_text_is_translated_in_any_locale(
    folder: Path, command: Command, tiny: tuple[str, ...]
) -> None:
    succeeded(command("train.py", *tiny, "chain=false"))
    (model,) = folder.glob("runs/points/*/model")
    run_attnlab = "import sys; from attnlab.commands import main; sys.exit(main())"
    for environment in (PLAIN_LOCALE, {"PYTHONIOENCODING": "ascii"}):
        asked = ended(folder, environment, "-c", run_attnlab, "translate", str(model), "한 a")
        assert (asked.returncode, asked.stderr) == (0, ""), environment
