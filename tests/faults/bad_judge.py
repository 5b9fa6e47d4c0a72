"""What is wrong with the way in which a command met bad input."""

from __future__ import annotations

import re
from pathlib import Path

from bad_case import Case
from bad_texts import MARKUP
from warmed import Ended

LONGEST_SENTENCE = 1_300
# A sentence says what is allowed or what to do.
REMEDY = re.compile(
    r"\b(must|allowed|choose|gives?|write|did you mean|known kinds|run|save|raise|lower|make|set|leave|put|see|prepare|"
    r"correct|name an?(?:other)?|starts?|copy|one reads|one of|add|try|takes|cannot be used|use|free|only)\b|"
    r"\b(has|have|are):|has no settings|--help shows"
)
# Whatever moves the cursor of a terminal or turns the text around it.
UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Training tells its validations there, and so do other stages what is no error.
NOTE = re.compile(r"^(step +\d+|experiment \w+ is finished already|training ended early|left out|MLflow: )")


def faults(case: Case, ended: Ended, folder: Path, before: set[str], temporary: Path) -> list[str]:
    """Sentences, none where all is well.

    before: the files that were there before the command ran.
    temporary: where the command had its temporary files.
    """
    found = []
    if ended.timed_out:
        found.append(f"it hung, and was killed after {ended.seconds:.0f} s")
    has_trace = "Traceback" in ended.err or "Traceback" in ended.out
    if has_trace:
        found.append(f"a stack trace; at its end: {' '.join(ended.err.strip().splitlines()[-1:])[:300]}")
    if case.expected == "works" and ended.code != 0:
        found.append(f"it should work, and ended with {ended.code}")
    if case.expected == "refused" and ended.code == 0:
        found.append("it should be refused, and ended with 0")
    if ended.code not in (0, 1):
        found.append(f"exit code {ended.code}")
    if ended.code != 0 and not ended.timed_out and not has_trace:
        found += _faults_of_sentences(case, ended.err)
    if UNPRINTABLE.search(ended.err):
        found.append("control characters reach the terminal")
    return found + _faults_of_files(case, ended, folder, before, temporary)


def _faults_of_sentences(case: Case, err: str) -> list[str]:
    lines = [line for line in err.splitlines() if not NOTE.match(line)]
    found = [f"no sentence of ours: {line}" for line in lines if not line.startswith("error: ")]
    if not lines:
        return ["it says nothing"]
    if len(lines) > case.problems:
        found.append(f"{len(lines)} sentences for {case.problems} problem(s)")
    if len(set(lines)) < len(lines):
        found.append("a sentence twice")
    found += [f"a sentence of {len(line)} characters" for line in lines if len(line) > LONGEST_SENTENCE]
    found += [f"no remedy: {line}" for line in lines if not REMEDY.search(line)]
    return found + [f"{text!r} is not named" for text in case.said if text not in err]


def _faults_of_files(case: Case, ended: Ended, folder: Path, before: set[str], temporary: Path) -> list[str]:
    new, gone = files(folder) - before, before - files(folder)
    left = [name for name in new if _is_unfinished(name)]
    found = [f"left behind: {', '.join(sorted(left))}"] if left else []
    if ended.code != 0 and (gone := {name for name in gone if not (folder / name).is_dir()}):
        found.append(f"what was there is gone: {', '.join(sorted(gone))}")
    scratch = sorted(path.name for path in temporary.iterdir())
    if scratch:
        found.append(f"left in the folder of temporary files: {', '.join(scratch)}")
    if "pwned" in {Path(name).name for name in files(folder)}:
        found.append("it ran somebody else's code")
    pages = [name for name in new if name.endswith(".html")]
    if any(MARKUP in (folder / name).read_text(encoding="utf-8") for name in pages):
        found.append("markup of the data stands in a page")
    if ended.code != 0 and "refuses before it writes" in case.kind and (more := [n for n in new if not _is_log(n)]):
        found.append(f"wrote before it refused: {', '.join(sorted(more))}")
    return found


def files(folder: Path) -> set[str]:
    """All files below a folder, by their relative names, and the folders that are empty."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_symlink() or path.is_file() or (path.is_dir() and not any(path.iterdir())):
            found.add(str(path.relative_to(folder)))
    return found


def _is_unfinished(name: str) -> bool:
    """Atomic writing has names that begin with a dot; locks are kept, and Hydra calls its own folder so."""
    parts = [part for part in Path(name).parts if part.startswith(".") and part != ".hydra"]
    return bool(parts) and not name.endswith(".lock")


def _is_log(name: str) -> bool:
    return ".hydra" in Path(name).parts or name.endswith((".log", ".lock"))
