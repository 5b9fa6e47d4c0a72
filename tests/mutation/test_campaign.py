"""The mutation campaign: a mutant counts as killed only if a test, a time limit or its import ended it."""

from __future__ import annotations

import os
import signal
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip("mutmut")

from campaign import NOT_TRIED, _fork_and_run, _of_a_death
from mutants import PACKAGE, NoImportError, mutants_of


@pytest.mark.parametrize(
    ("error", "result", "by"),
    [
        (None, "survived", ""),
        (NoImportError("NameError on import"), "killed", "NameError on import"),
        (AssertionError("x has no code to change"), NOT_TRIED, "AssertionError: x has no code to change"),
        (SystemExit(0), NOT_TRIED, "SystemExit: 0"),
        (signal.SIGSEGV, NOT_TRIED, "the process ended with -11 before any test"),
    ],
)
def test_mutant_that_cannot_be_put_in_place_is_reported_as_killed_or_not_tried(
    error: object, result: str, by: str
) -> None:
    def put_in_place(module: ModuleType) -> None:
        if isinstance(error, BaseException):
            raise error
        if error:
            os.kill(os.getpid(), error)  # type: ignore[arg-type]

    mutant = SimpleNamespace(path=PACKAGE / "errors.py", put_in_place=put_in_place)
    outcome = _fork_and_run(mutant, [], seconds=1)  # type: ignore[arg-type]
    assert (outcome["result"], outcome["by"]) == (result, by)


def test_ended_process_counts_as_killed_only_after_a_test_started() -> None:
    assert _of_a_death(-signal.SIGXCPU, False, "t") == ("killed", "its time")
    assert _of_a_death(-signal.SIGKILL, True, "t") == ("killed", "its time")
    assert _of_a_death(-signal.SIGSEGV, False, "t") == ("killed", "t")
    for status in (-signal.SIGKILL, -signal.SIGTERM, 1):  # by the machine, or by the harness
        assert _of_a_death(status, False, "t")[0] == NOT_TRIED


def test_mutant_without_tests_survives_in_its_own_process() -> None:
    from attnlab import errors

    mutant = mutants_of(PACKAGE / "errors.py")[0]
    outcome = _fork_and_run(mutant, [], seconds=1)
    assert outcome["result"] == "survived"  # it met no test
    assert errors.show("a")
