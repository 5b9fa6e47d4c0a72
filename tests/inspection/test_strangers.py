"""Forty modules by an author who had not seen the probes: which of them are told right.

`pytest -s tests/inspection/test_strangers.py` prints the table.
"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import yaml

from attnlab.inspection.probes import inspect_module
from attnlab.inspection.stranger import Sizes, Stranger, load

STRANGERS = Path(__file__).parent / "strangers"


def faults_of(name: str) -> list[str]:
    with warnings.catch_warnings(action="ignore"):  # a softmax without an axis is one of the slips
        stranger = Stranger(load(f"{STRANGERS / name}.py:build"), Sizes())
        found = inspect_module(stranger)
    assert not [each.error for each in found if each.error]
    return [each.fault.name for each in found if each.fault is not None]


def test_strangers_are_told_right_from_wrong_and_their_mistakes_by_name() -> None:
    labels = yaml.safe_load((STRANGERS / "labels.yaml").read_text(encoding="utf-8"))
    assert len(labels) == 40
    counts: Counter[tuple[str, str]] = Counter()
    named = 0
    for name, label in labels.items():
        mistake = label["mistake"]
        faults = faults_of(name)
        counts["wrong" if mistake else "right", "wrong" if faults else "right"] += 1
        named += mistake in faults if mistake else not faults
        print(f"{name}: {mistake or 'right'} -> {', '.join(faults) or 'right'}")
    print(f"author -> found: {dict(counts)}; named as by the author: {named} of {len(labels)}")
    assert counts == {("right", "right"): 20, ("wrong", "wrong"): 20}
    # Heads that are merged without a transposition mix the queries, and are called so.
    assert named == 39
