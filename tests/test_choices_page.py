"""docs/choices.md: the row of a group names each of its choices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CONF = ROOT / "conf"
TABLES = [
    line
    for line in (ROOT / "docs" / "choices.md").read_text(encoding="utf-8").splitlines()
    if line[:2] == "| "
]
# `training` is chosen by the task, and the others are not for the command line.
NOT_FOR_USERS = {
    ".", "model", "training", "hydra/job_logging", "hydra/launcher", "hydra/sweeper",
    "hydra/sweeper/sampler",
}  # fmt: skip
GROUPS = sorted(
    {str(path.parent.relative_to(CONF)) for path in CONF.rglob("*.yaml")} - NOT_FOR_USERS
)


def names_in(lines: list[str]) -> set[str]:
    return set(re.findall(r"`([^`]+)`", " ".join(lines)))


@pytest.mark.parametrize("group", GROUPS)
def test_choices_page_names_every_choice_of_a_group(group):
    of_group = [line for line in TABLES if f"`{group}`" in line.split(" | ")[0]]
    assert of_group, f"no row for {group}"
    # The presets stand in a table of their own.
    named = names_in(TABLES if group == "experiment" else of_group)
    missing = (
        {path.stem for path in (CONF / group).glob("*.yaml")}
        - named
        - ({"none"} if group == "search" else set())
    )
    assert not missing
