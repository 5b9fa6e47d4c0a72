"""docs/choices.md: the row of a group names each of its choices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnlab.experiment.config_sources import groups

ROOT = Path(__file__).resolve().parent.parent
TABLES = [
    line
    for line in (ROOT / "docs" / "choices.md").read_text(encoding="utf-8").splitlines()
    if line[:2] == "| "
]
# They are chosen by the task.
NOT_FOR_USERS = {"model", "training"}
CHOICES = groups()
GROUPS = sorted(CHOICES.keys() - NOT_FOR_USERS)


def names_in(lines: list[str]) -> set[str]:
    return set(re.findall(r"`([^`]+)`", " ".join(lines)))


@pytest.mark.parametrize("group", GROUPS)
def test_choices_page_names_every_choice_of_a_group(group):
    of_group = [line for line in TABLES if f"`{group}`" in line.split(" | ")[0]]
    assert of_group, f"no row for {group}"
    # The presets stand in a table of their own.
    named = names_in(TABLES if group == "experiment" else of_group)
    missing = {*CHOICES[group]} - named - ({"none"} if group == "search" else set())
    assert not missing
