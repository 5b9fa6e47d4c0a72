"""When a study's question was written down: the commit that has it as it stands now.

What counts is what decides a verdict and what is trained, not the words around it. Trainings that
began before that commit were not asked this question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from attnlab.config.params import git

# Of a study's file; the rest tells a reader what was asked, and what became of it.
_REGISTERED = (
    "systems", "settings", "seeds", "first_seed", "looks", "measurement", "expect", "published",
    "learnt", "foretell", "few_seeds", "depends_on", "comparable", "tune", "paired",
)  # fmt: skip

# Of these, what the rows follow from; the rest judges them.
_TRAINED = ("systems", "settings", "first_seed", "measurement", "tune")


@dataclass(frozen=True)
class Registration:
    """digest: of what is registered.
    commit: the first one in which the file has it; empty where none does.
    date: of the commit.
    """

    digest: str
    commit: str = ""
    date: datetime | None = None

    def is_before(self, began: datetime) -> bool:
        """Whether the question stood before something began."""
        return self.date is not None and self.date <= began


def registration_of(path: Path) -> Registration:
    """The registration of a study's file; without a commit where no git knows its content."""
    digest = digest_of(path.read_text(encoding="utf-8"))
    folder = path.resolve().parent
    log = git(folder, "log", "--follow", "--reverse", "--format=%H %cI", "--", path.name)
    found = Registration(digest)
    for line in (log or "").splitlines():
        commit, _, date = line.partition(" ")
        content = git(folder, "show", f"{commit}:./{path.name}")
        if content is None:  # the file had another name then
            continue
        if digest_of(content) != digest:
            found = Registration(digest)
        elif not found.commit:
            found = Registration(digest, commit, datetime.fromisoformat(date))
    return found


def digest_of(text: str) -> str:
    """A digest of what a study's file registers; empty for a text that is no study."""
    return _digest(text, _REGISTERED)


def digest_of_training(text: str) -> str:
    """A digest of what a study's file trains and measures; empty for a text that is no study."""
    return _digest(text, _TRAINED)


def _digest(text: str, keys: Sequence[str]) -> str:
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        return ""
    if not isinstance(content, Mapping):
        return ""
    registered = {name: _asked(name, content[name]) for name in keys if name in content}
    canonical = json.dumps(registered, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _asked(name: str, value: Any) -> Any:
    """An expectation without its words."""
    if name != "expect":
        return value
    return [
        {key: part for key, part in expected.items() if key != "says"}
        if isinstance(expected, Mapping)
        else expected
        for expected in value
    ]
