"""Bad configs, commands, data and files at the real entry points: each works, or ends with a sentence and nothing else.

What is tried is made by `bad_configs`, `bad_commands`, `bad_data` and `bad_files`: several thousand cases of some dozen
kinds. A plain run draws a few of each kind, always the same; ATTNLAB_FAULTS is how many, and 0 takes all:

    ATTNLAB_FAULTS=0 python -m pytest tests/faults/test_bad_inputs.py
"""

from __future__ import annotations

import importlib
import os
import random
import shlex
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from bad_case import Case
from bad_judge import faults, files
from warmed import Ended, Warmed

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
OF_EACH_KIND = int(os.environ.get("ATTNLAB_FAULTS", "1"))
AT_THE_SHELL = 20
SECONDS = 120.0  # a command that takes longer hangs; the longest takes a few

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the commands run in forks of one process")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a command has beside the environment of the tests, which is kept from it."""
    taken = ("DVC_ROOT", "DVC_STAGE", "ATTNLAB_ABSENT", "HYDRA_FULL_ERROR", "LOCAL_RANK", "NODE_RANK")
    return {**dict.fromkeys(taken, ""), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def made(what: str) -> list[Case]:
    """The cases of `bad_configs`, `bad_commands` or `bad_data`; making them composes configs, which takes a while."""
    return list(importlib.import_module(f"bad_{what}").cases())


def drawn(cases: Iterable[Case], number: int) -> list[Case]:
    """So many cases of each kind, the same each time; all of them for 0."""
    kinds = defaultdict(list)
    for case in cases:
        kinds[case.kind].append(case)
    return [
        case
        for kind in sorted(kinds)
        for case in (random.Random(1).sample(kinds[kind], min(number or len(kinds[kind]), len(kinds[kind]))))
    ]


def tried(case: Case, number: int, root: Path, environment: dict[str, str], warmed: Warmed | None) -> list[str]:
    """What is wrong with how the command met the case. warmed: None runs it as a shell does."""
    folder, temporary = root / str(number) / "folder", root / str(number) / "temporary"
    for path in (folder, temporary):
        path.mkdir(parents=True)
    case.make(folder)
    if case.unprivileged and os.geteuid() == 0:
        for path in (*root.resolve().parents, root, folder.parent, folder, temporary):
            if path.stat().st_uid == 0 and path.is_relative_to(root.parent.parent):
                path.chmod(0o777)
    before = files(folder)
    given = {**environment, "TMPDIR": str(temporary), **dict(case.environment)}
    if warmed is None:
        ended = _at_the_shell(case, folder, given)
    else:
        ended = warmed.run(case.script, case.arguments, folder, given, SECONDS, case.unprivileged)
    return faults(case, ended, folder, before, temporary)


def _at_the_shell(case: Case, folder: Path, environment: dict[str, str]) -> Ended:
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, str(PIPELINES / case.script), *case.arguments],
        cwd=folder,
        env={name: value for name, value in {**os.environ, **environment}.items() if value},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=SECONDS,
        check=False,
    )
    out, err = (text.decode("utf-8", "backslashreplace") for text in (ended.stdout, ended.stderr))
    return Ended(ended.returncode, out, err, time.monotonic() - started, 0.0, False)


def told(case: Case, found: list[str]) -> str:
    command = shlex.join(["python", f"pipelines/{case.script}", *(text[:200] for text in case.arguments)])
    return "\n".join([f"{case.name[:200]}:", *(f"    {fault[:400]}" for fault in found), f"    {command}"])


def check(cases: list[Case], root: Path, environment: dict[str, str], warmed: Warmed | None) -> None:
    assert cases
    wrong = []
    for number, case in enumerate(cases, 1):
        if found := tried(case, number, root, environment, warmed):
            wrong.append(told(case, found))
        if number % 50 == 0:
            print(f"{number} of {len(cases)}, {len(wrong)} badly met", flush=True)
    print(f"{len(cases)} bad inputs, {len(wrong)} badly met")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("what", ["configs", "commands", "data"])
def test_bad(what: str, warmed: Warmed, tmp_path: Path, environment: dict[str, str]) -> None:
    check(drawn(made(what), OF_EACH_KIND), tmp_path, environment, warmed)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_bad_files_of_the_stages(warmed: Warmed, tmp_path: Path, environment: dict[str, str]) -> None:
    from bad_files import cases, make_stages

    stages = make_stages(tmp_path / "stages", warmed, environment)
    check(drawn(cases(stages), OF_EACH_KIND), tmp_path, environment, warmed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_same_at_the_shell(tmp_path: Path, environment: dict[str, str]) -> None:
    """A new process for each: what a fork of a warmed one shows is what a user sees."""
    number = AT_THE_SHELL if "ATTNLAB_FAULTS" in os.environ else 2
    every = (case for what in ("configs", "commands", "data") for case in made(what))
    refused = [case for case in every if case.expected == "refused" and not case.unprivileged]
    check(random.Random(2).sample(refused, number), tmp_path, environment, None)


def test_the_judge_sees_what_is_wrong(tmp_path: Path) -> None:
    case = Case("a", "b; refuses before it writes", "train.py", (), "refused", ("seed",))
    (tmp_path / "given").write_text("")
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def judged(code: int, err: str, expected: str = "refused", timed_out: bool = False) -> list[str]:
        folder = tmp_path / "folder"
        folder.mkdir(exist_ok=True)
        one = Case(case.name, case.kind, case.script, (), expected, case.said)  # type: ignore[arg-type]
        return faults(one, Ended(code, "", err, 1.0, 1.0, timed_out), folder, set(), scratch)

    good = "error: seed must be a whole number, got 'x'\n"
    assert judged(1, good) == []
    assert judged(0, "", "works") == []
    assert judged(0, "", "refused")
    assert judged(1, good, "works")
    assert judged(-9, "", timed_out=True)
    assert judged(-11, good)
    assert judged(1, "Traceback (most recent call last):\nKeyError: 'seed'\n")
    assert judged(1, "")
    assert judged(1, good + "error: training must be something else\n")
    assert judged(1, "error: model must be smaller\n") == ["'seed' is not named"]
    assert judged(1, "error: seed is bad\n")
    assert judged(1, "error: seed must be no \x1b[31m\n") == ["control characters reach the terminal"]
    (tmp_path / "folder" / "metrics.json").write_text("{}")
    assert judged(1, good)
    (tmp_path / "folder" / "metrics.json").unlink()
    (tmp_path / "folder" / ".model.x7").mkdir()
    assert judged(1, good)
