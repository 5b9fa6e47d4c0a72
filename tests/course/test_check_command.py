"""The command `attnlab check`: its exit code, and the language of its answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.commands import main

RIGHT = "def both_directions(f, b):\n    return [[*map(join, x, y[::-1])] for x, y in zip(f, b)]\n"
JOIN = "def join(x, y):\n    return [*x, *y]\n\n\n"
WRONG = "import numpy as np\n\n\ndef both_directions(f, b):\n    return np.concatenate([f, b], 2)\n"


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "mine.py"


def test_right_file_exits_with_zero(file, capsys):
    file.write_text(JOIN + RIGHT, "utf-8")
    assert main(["check", "lesson-2", str(file), "--lang", "en"]) == 0
    assert capsys.readouterr().out == "All right.\n"


@pytest.mark.parametrize(
    ("locale", "more", "says"),
    [
        ("ko_KR.UTF-8", [], "서로 다른 단어를 읽은 상태"),
        ("en_US.UTF-8", [], "made at different words"),
        ("ko_KR.UTF-8", ["--lang", "en"], "made at different words"),
        ("en_US.UTF-8", ["--lang", "ko"], "서로 다른 단어를 읽은 상태"),
    ],
)
def test_wrong_file_exits_with_one_and_says_why(file, capsys, monkeypatch, locale, more, says):
    monkeypatch.setenv("LC_ALL", locale)
    file.write_text(WRONG, "utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["check", "lesson-2", str(file), *more])
    assert stopped.value.code == 1
    assert says in capsys.readouterr().out


def test_unknown_lesson_is_refused_in_the_language(file, capsys):
    file.write_text(WRONG, "utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["check", "lesson-99", str(file), "--lang", "ko"])
    assert stopped.value.code == 1
    assert "lesson-1부터 lesson-12까지" in capsys.readouterr().out
