"""Run the experiments of the course: every command of the lessons' pages, in their order.

    python docs/run_course.py                     # in full, with the time that each lesson takes,
                                                  # by the clock and of the processor
    python docs/run_course.py --steps 2 02 05     # a few steps, one seed; of lessons 2 and 5

The commands stand in the `sh` blocks of docs/course/ko/; the English pages have the same ones.
Those that grade a student's file are left out. A command that fails ends the run.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "docs" / "course" / "ko"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_TRAIN, _GRADE = "python pipelines/train.py ", "attnlab check "


def pages() -> list[Path]:
    """The lessons in their order."""
    return sorted(LESSONS.glob("[0-9]*.md"))


def commands_of(page: Path) -> list[str]:
    """The commands of a lesson that can be run without a student's file."""
    commands: list[str] = []
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        commands += [line for line in block.splitlines() if not line.startswith(_GRADE)]
    return commands


def shortened(command: str, steps: int) -> str:
    """The command with so many training steps and one seed; other commands stay as they are."""
    if not command.startswith(_TRAIN):
        return command
    one_seed = re.sub(r"\bseed=(\d+)[\d,]*", r"seed=\1", command)
    return f"{one_seed} training.max_steps={steps}"


def run(page: Path, steps: int | None) -> tuple[float, float]:
    """Run the commands of a lesson; returns the seconds that they took, by clock and processor."""
    start, cpu_start = time.monotonic(), _cpu_seconds()
    # `python` and `attnlab` are those that run this script.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for command in commands_of(page):
        if steps is not None:
            command = shortened(command, steps)
        print(f"$ {command}", flush=True)
        subprocess.run(shlex.split(command), cwd=ROOT, env={**os.environ, "PATH": path}, check=True)
    return time.monotonic() - start, _cpu_seconds() - cpu_start


def _cpu_seconds() -> float:
    """The processor time of all commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Run the experiments of the course.")
    parser.add_argument("lessons", nargs="*", metavar="NN", help="such as 02; default: all")
    parser.add_argument("--steps", type=int, help="of each training, with one seed")
    given = parser.parse_args(arguments)

    times = []
    for page in pages():
        if given.lessons and page.name[:2] not in given.lessons:
            continue
        clock, cpu = run(page, given.steps)
        times.append(f"{page.stem}: {clock / 60:.1f} min, {cpu:.0f} CPU s")
        print(times[-1], flush=True)
    print("All lessons:", *times, sep="\n")


if __name__ == "__main__":
    main()
