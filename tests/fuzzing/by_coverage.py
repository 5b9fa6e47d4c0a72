"""Fuzzing of the file readers by coverage: every changed file is read, or refused in a sentence.

    make fuzz                         # every kind of file, a minute each
    make fuzz KIND=maps SECONDS=600

atheris is not among the project's dependencies: `make fuzz` installs it beside them. A file that breaks a reader
lies under build/fuzzing and is printed with its stack trace; tests/security has the ones found so far.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

KINDS = ("params", "metrics", "facts", "config", "record", "maps", "checkpoint")
SCRIPT = Path(__file__).with_name("one_kind.py")


def tried(kind: str, seconds: int) -> bool:
    """Whether all files of a kind were read or refused. The fuzzer ends its process, so it runs in one of its own."""
    command = [sys.executable, str(SCRIPT), kind, str(seconds)]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace")
    tries = re.search(r"number_of_executed_units: (\d+)", ended.stderr)
    well = ended.returncode == 0 and tries is not None
    print(
        f"{kind}: {int(tries[1]) if tries else 0:,} files, {'all' if well else 'all but one'} read or refused",
        flush=True,
    )
    if not well:
        print(ended.stderr[-6_000:])
    return well


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="*", help=", ".join(KINDS))
    parser.add_argument("--seconds", type=int, default=60, help="of each kind")
    options = parser.parse_args()
    unknown = sorted({*options.kind} - {*KINDS})
    if unknown:
        raise SystemExit(f"there is no kind {', '.join(unknown)}; there are {', '.join(KINDS)}")
    results = [tried(kind, options.seconds) for kind in options.kind or KINDS]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
