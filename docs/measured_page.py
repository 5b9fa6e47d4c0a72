"""Pages of this folder with a part that a script measures and writes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MECHANISMS = ROOT / "docs" / "mechanisms.md"
END = "<!-- end -->\n"


def write_measured(page: Path, target: str, lines: Sequence[str]) -> None:
    """Write lines between the marks of a page.

    target: of make, which the first mark names.
    """
    begin = f"<!-- make {target} -->\n"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(END)
    measured = "".join(f"{line}\n" for line in lines)
    page.write_text(f"{before}{begin}{measured}{END}{after}", encoding="utf-8")


def revision() -> str:
    """The commit that is checked out; `unknown` in a copy without a repository."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def mechanism_rows() -> list[list[str]]:
    """The rows of docs/mechanisms.md: mechanism, formula, source, config choice, test."""
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in MECHANISMS.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith(("| mechanism", "| ---"))
    ]
