"""Waiting times: help, mistakes, and a chain with nothing to do.

    python benchmarks/startup.py [--rounds 5]

By the clock, for it is a person who waits; the least of the rounds, for another program can only
add to it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from arguments import at_least_one
from configuration import ROOT
from results import Row, report

TRAIN = (sys.executable, "pipelines/train.py")
# What is asked for, the command, and its exit code.
COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "help": ((*TRAIN, "--help"), 0),
    "an unknown choice": ((*TRAIN, "model/attention=doot"), 1),
    "an unknown setting": ((*TRAIN, "training.max_stepz=3"), 1),
    "a value of another kind": ((*TRAIN, "training.max_steps=many"), 1),
}
REPRO = "dvc repro with nothing to do"


def seconds(command: Sequence[str], folder: Path, code: int) -> float:
    """Raises SystemExit where the command ends in another way than it should."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    quiet = {"DVC_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1", "PATH": path}
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **quiet}, capture_output=True, text=True
    )
    taken = time.perf_counter() - start
    if done.returncode != code:
        sys.exit(
            f"{' '.join(command)} ended with {done.returncode}, not "
            f"{code}:\n{done.stdout}{done.stderr}"
        )
    return taken


def small_chain(folder: Path) -> Path:
    """A clone with a chain that has run once, its training as short as can be."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    params = folder / "params.yaml"
    text = params.read_text(encoding="utf-8")
    for setting, small in {"num_pairs": 200, "max_steps": 2}.items():
        text = text.replace(f"{setting}: null", f"{setting}: {small}")
    params.write_text(text, encoding="utf-8")
    seconds(["dvc", "repro", "--quiet"], folder, 0)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=at_least_one, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        chain = small_chain(Path(temporary) / "chain")
        waits = {name: (command, ROOT, code) for name, (command, code) in COMMANDS.items()}
        waits[REPRO] = (("dvc", "repro"), chain, 0)
        found: dict[str, list[float]] = {name: [] for name in waits}
        for _ in range(args.rounds):
            for name, (command, folder, code) in waits.items():
                found[name].append(seconds(command, folder, code))
    rows: list[Row] = [
        {"what is asked for": name, "seconds": min(times)} for name, times in found.items()
    ]
    report("startup", rows, [f"seconds by the clock, the least of {args.rounds} rounds"])


if __name__ == "__main__":
    main()
