"""docs/mechanisms.md: every choice has a row, and every name in it exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from measured_page import mechanism_rows

ROOT = Path(__file__).resolve().parent.parent
CONF = ROOT / "conf"
PAGE = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
ROWS = mechanism_rows()
GROUPS = [
    *(f"model/{folder.name}" for folder in sorted((CONF / "model").iterdir()) if folder.is_dir()),
    "training/teacher_forcing",
    "search",
    "padding",
]
# Choices that switch a mechanism off.
ABSENT = {
    "model/projection=none",
    "model/heads=one",
    "model/input_feeding=none",
    "search=none",
    "model/history=none",
    "model/gate=none",
}


def choices_of(group: str) -> list[str]:
    return [f"{group}={path.stem}" for path in sorted((CONF / group).glob("*.yaml"))]


def test_mechanisms_table_is_parsed():
    assert len(ROWS) > 60
    assert all(len(row) == 5 for row in ROWS), [row for row in ROWS if len(row) != 5]


@pytest.mark.parametrize("group", GROUPS)
def test_mechanisms_table_names_every_choice_of_a_group(group):
    named = " ".join(row[3] for row in ROWS)
    missing = [
        choice
        for choice in choices_of(group)
        if choice not in ABSENT
        and f"`{choice}`" not in named
        and f"`{choice.partition('=')[2]}`" not in named
    ]
    assert not missing


def test_mechanisms_table_names_only_existing_choices():
    for _, _, _, config, _ in ROWS:
        for word in re.findall(r"`([^`]+)`", config):
            for choice in re.findall(r"(?:^| )([a-z_/]+)=([a-z_0-9]+)", word):
                group, name = choice
                if (CONF / group).is_dir():
                    assert (CONF / group / f"{name}.yaml").is_file(), word
            if word.startswith("python "):
                assert (ROOT / word.split()[1]).is_file(), word


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_mechanisms_row_names_an_existing_test(row):
    (test,) = re.findall(r"`(tests/[^`]+)`", row[4])
    assert (ROOT / test).is_file()


def test_mechanisms_page_names_only_existing_presets():
    section = PAGE.partition("## Presets")[2]
    names = re.findall(r"`([a-z]+\d{4}\w*)`", section)
    papers = sorted(path.stem for path in (CONF / "experiment").glob("*[0-9][0-9][0-9][0-9]*.yaml"))
    assert sorted(names) == papers
