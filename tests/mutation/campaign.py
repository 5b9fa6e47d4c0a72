"""Mutation tests: change the code in one place and check that a test fails.

Run it by `make mutate`, or `python tests/mutation/campaign.py`.

pytest collects the tests once and runs them once, which measures how long each takes and which lines it reaches. From
then on every mutant is a fork of that process: it meets the tests that reach its line, the quickest first and one of
each test function before a second of any, until one fails. `targets.toml` says which modules meet which tests.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import mmap
import os
import random
import resource
import select
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, Phase, settings
from mutants import PACKAGE, Mutant, NoImportError, mutants_of

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "mutation"
NOT_TRIED = "not tried"  # what could not be put in place, and what ended by no test's doing: no merit of the tests
CRASHES = {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV}


@dataclass
class Family:
    name: str
    modules: list[Path]
    tests: list[str]


@dataclass
class Lap:
    """What the run of the tests on the unchanged code measured."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests_of_line: dict[Path, dict[int, list[str]]] = field(default_factory=dict)

    def reach(self, mutant: Mutant) -> set[str]:
        """The tests that reach the changed line; where the measurement names none, those that reach the function."""
        lines = self.tests_of_line.get(mutant.path, {})
        for places in (range(mutant.first_line, mutant.last_line + 1), mutant.function_lines):
            tests = {test for line in places for test in lines.get(line, []) if test}
            if tests:
                return tests
        return set()


class Campaign:
    """As a pytest plugin: it takes the place of the loop over the tests."""

    def __init__(self, family: Family, options: argparse.Namespace) -> None:
        self.family, self.options = family, options
        self.undone: list[str] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        by_name = {item.nodeid: item for item in session.items}
        lap = self._undisturbed(session.items)
        print(f"{self.family.name}: {len(by_name)} tests, {sum(lap.seconds.values()):.0f} s of processor time")
        drawn = [mutant for path in self.family.modules for mutant in self._drawn(path)]
        before = _known()
        todo = [m for m in drawn if self.options.again or before.get(m.identity, {}).get("result") != "killed"]
        if self.options.test:
            todo = [mutant for mutant in todo if mutant.identity in before]
        random.Random(self.family.name).shuffle(todo)  # what is done when the time is over is a fair sample
        print(
            f"{self.family.name}: {len(drawn)} mutants, {len(drawn) - len(todo)} of them known to be killed", flush=True
        )
        seen: Counter[str] = Counter()
        with (RESULTS / "results.jsonl").open("a", encoding="utf-8") as file:
            for number, mutant in enumerate(todo, 1):
                if self.options.minutes and time.process_time() + _children() > 60 * self.options.minutes:
                    self.undone = [m.function for m in todo[number - 1 :]]
                    break
                items = [by_name[name] for name in self._in_order(lap, mutant)]
                outcome = _fork_and_run(mutant, items, self.options.seconds) if items else {"result": "no test"}
                seen[outcome["result"]] += 1
                if self.options.test and outcome["result"] != "killed":
                    continue  # the other tests said it already
                place = {"family": self.family.name, "module": mutant.module}
                line = {"function": mutant.function, "line": mutant.first_line, "diff": mutant.diff}
                file.write(json.dumps({"identity": mutant.identity, **place, **line, **outcome}) + "\n")
                file.flush()
                if number % 25 == 0:
                    print(f"  {number} of {len(todo)}: {dict(seen)}, {_children():.0f} s", flush=True)
        return True

    def _undisturbed(self, items: list[pytest.Item]) -> Lap:
        lap = Lap()
        measured = coverage.Coverage(data_file=None, config_file=False, include=[str(m) for m in self.family.modules])
        measured.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            measured.switch_context(item.nodeid)
            started = time.process_time()
            for report in runtestprotocol(item, log=False, nextitem=following):
                if report.failed:
                    pytest.exit(f"{item.nodeid} fails without any mutant:\n{report.longreprtext}", returncode=1)
            lap.seconds[item.nodeid] = time.process_time() - started
        measured.stop()
        data = measured.get_data()
        lap.tests_of_line = {path: data.contexts_by_lineno(str(path)) for path in self.family.modules}
        return lap

    def _drawn(self, path: Path) -> list[Mutant]:
        mutants = mutants_of(path)
        if self.options.share < 1:
            count = -(-len(mutants) * self.options.share // 1)
            mutants = random.Random(path.name).sample(mutants, int(count))
        return mutants

    def _in_order(self, lap: Lap, mutant: Mutant) -> list[str]:
        """The quickest first, one of each function's cases before a second of any, within the time allowed."""
        rank: Counter[str] = Counter()
        ranked = []
        for name in sorted(lap.reach(mutant), key=lambda name: lap.seconds[name]):
            ranked.append((rank[name.split("[")[0]], lap.seconds[name], name))
            rank[name.split("[")[0]] += 1
        taken, total = [], 0.0
        for _, seconds, name in sorted(ranked):
            total += seconds
            if taken and total > self.options.seconds:
                break
            taken.append(name)
        return taken


def _fork_and_run(mutant: Mutant, items: list[pytest.Item], seconds: float) -> dict[str, str | float]:
    """What becomes of the mutant, in a process of its own: killed, survived, or not tried where it could not be."""
    reading, writing = os.pipe()
    began = mmap.mmap(-1, 4)  # how many tests have begun, which outlives the child
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            faulthandler.disable()  # a mutant may crash the interpreter, which is no news
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            limit = int(time.process_time() + 10 * seconds + 30)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
            try:
                message = _meet(mutant, items, began)
            except BaseException as error:
                message = f"{NOT_TRIED}\0{type(error).__name__}: {error}"
            os.write(writing, message.encode()[:4000])
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], 100 * seconds + 300)
    message = os.read(reading, 4000).decode(errors="replace") if ready else ""
    os.close(reading)
    if not ready:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    count = int.from_bytes(began[:], "little")
    result, by = (
        message.split("\0", 1) if message else _of_a_death(status, not ready, items[count - 1].nodeid if count else "")
    )
    return {"result": result, "by": by, "seconds": round(time.monotonic() - started, 2)}


def _of_a_death(status: int, out_of_time: bool, test: str) -> tuple[str, str]:
    """The outcome of a silent child, by its exit code, below 0 for a signal, and the test that it was at."""
    if test and (status == -signal.SIGXCPU or (out_of_time and status == -signal.SIGKILL)):
        return "killed", "its time"
    if test and -status in CRASHES:
        return "killed", test
    return NOT_TRIED, f"the process ended with {status} {'in ' + test if test else 'before any test'}"


def _meet(mutant: Mutant, items: list[pytest.Item], began: mmap.mmap) -> str:
    name = mutant.path.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".")
    try:
        mutant.put_in_place(importlib.import_module(name))
    except NoImportError as error:
        return f"killed\0{error}"
    for number, item in enumerate(items, 1):
        following = items[number] if number < len(items) else None
        began[:] = number.to_bytes(4, "little")
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return f"killed\0{item.nodeid}"
    return "survived\0"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _known() -> dict[str, dict[str, str]]:
    """The last result of every mutant that was ever tried."""
    path = RESULTS / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {result["identity"]: result for result in map(json.loads, lines)}


def families(names: Iterable[str]) -> list[Family]:
    table = tomllib.loads((Path(__file__).parent / "targets.toml").read_text(encoding="utf-8"))
    unknown = set(names) - set(table)
    if unknown:
        raise SystemExit(f"no family is called {', '.join(sorted(unknown))}; there are {', '.join(table)}")
    found = []
    for name in names or table:
        modules = [
            path
            for entry in table[name]["modules"]
            for path in (sorted((PACKAGE / entry).glob("*.py")) if (PACKAGE / entry).is_dir() else [PACKAGE / entry])
            if path.name != "__init__.py"
        ]
        found.append(Family(name, modules, table[name]["tests"]))
    return found


def report(chosen: list[Family]) -> None:
    """The table of the modules, and the survivors, as they stand in results.jsonl for the code as it is now."""
    known = _known()
    print("| module | mutants | not tried | tried | killed | survived | killed of those tried |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    survivors: list[str] = []
    failed: list[str] = []
    for family in chosen:
        totals: Counter[str] = Counter()
        rows = []
        for path in family.modules:
            mutants = mutants_of(path)
            met = [(mutant, known[mutant.identity]) for mutant in mutants if mutant.identity in known]
            tried = [(mutant, result) for mutant, result in met if result["result"] != NOT_TRIED]
            failed += [
                f"{mutant.module}:{mutant.first_line} {r['by']}" for mutant, r in met if r["result"] == NOT_TRIED
            ]
            killed = sum(result["result"] == "killed" for _, result in tried)
            totals.update(mutants=len(mutants), not_tried=len(met) - len(tried), tried=len(tried), killed=killed)
            if mutants:
                rows.append(
                    _row(path.relative_to(PACKAGE).as_posix(), len(mutants), len(met) - len(tried), len(tried), killed)
                )
            survivors += [
                f"{mutant.module}:{mutant.first_line} {mutant.function}, {result['result']}\n{mutant.diff}\n"
                for mutant, result in tried
                if result["result"] != "killed"
            ]
        counts = [totals[name] for name in ("mutants", "not_tried", "tried", "killed")]
        print("\n".join([*rows, _row(f"**{family.name}**", *counts)]))
    (RESULTS / "survivors.txt").write_text("\n".join(survivors), encoding="utf-8")
    print("\n".join(["", f"{len(failed)} that could not be tried:", *failed]) if failed else "")
    print(f"{len(survivors)} survivors: {(RESULTS / 'survivors.txt').relative_to(ROOT)}")


def _row(name: str, mutants: int, not_tried: int, tried: int, killed: int) -> str:
    share = f"{100 * killed / tried:.1f} %" if tried else ""
    return f"| {name} | {mutants} | {not_tried} | {tried} | {killed} | {tried - killed} | {share} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", nargs="*", help="masks, attention, ...; all without one")
    parser.add_argument("--share", type=float, default=1.0, help="of each module's mutants, the same ones every time")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests that a mutant meets at most")
    parser.add_argument("--minutes", type=float, help="of processor time for each family, then stop")
    parser.add_argument("--test", action="append", help="only by this one, and only what survived so far")
    parser.add_argument("--again", action="store_true", help="try also what is known to be killed")
    parser.add_argument("--report", action="store_true", help="only report what is known")
    options = parser.parse_args()
    os.chdir(ROOT)
    RESULTS.mkdir(parents=True, exist_ok=True)
    chosen = families(options.family)
    if not options.report:
        for family in chosen:
            child = os.fork()  # each family starts with a fresh pytest
            if child == 0:
                os._exit(run(family, options))
            if os.waitpid(child, 0)[1] != 0:
                raise SystemExit(f"{family.name}: stopped")
    report(chosen)


def run(family: Family, options: argparse.Namespace) -> int:
    # What is drawn is the same every time, a slow machine is no failure, and a failure need not be made smaller.
    quick = settings(
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.register_profile("mutation", quick)
    settings.load_profile("mutation")
    campaign = Campaign(family, options)
    switches = ["-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--capture=no", "--tb=short"]
    status = int(pytest.main(["-q", "--durations=0", *switches, *(options.test or family.tests)], plugins=[campaign]))
    if campaign.undone:
        print(f"{family.name}: the time was over before {len(campaign.undone)} mutants")
    sys.stdout.flush()
    return status if status != pytest.ExitCode.NO_TESTS_COLLECTED else 1


if __name__ == "__main__":
    main()
