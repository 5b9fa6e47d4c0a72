"""docs/atlas.md and docs/oracles.md: what their scripts write."""

from __future__ import annotations

from pathlib import Path

import make_atlas as atlas
import make_oracles as oracles
import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent.parent


def test_star_has_every_score_and_every_arm_twice():
    choices = atlas.choices()
    assert len(choices) == len(set(choices))
    for group, left_out in (("attention", "none"), ("normaliser", "softmax"), ("history", "none")):
        named = [path.stem for path in (ROOT / "conf" / "model" / group).glob("*.yaml")]
        for name in named:
            found = [choice for choice in choices if f"model/{group}={name}" in choice.split()]
            alone = [choice for choice in found if choice == f"model/attention={name}"]
            if name == left_out:
                assert not found
            elif group == "attention":
                assert len(alone) == 1
            else:
                assert len(found) == 2


def test_atlas_shows_the_rows_that_were_measured():
    page = atlas.PAGE.read_text(encoding="utf-8")
    rows = atlas.rows()
    for row in rows:
        assert row["choice"] in atlas.choices(), row
        assert int(row["seed"]) in atlas.SEEDS, row
    for data in atlas.TASKS:
        section = atlas.section(data, [row for row in rows if row["data"] == data])
        assert "\n".join(section) in page


def test_parts_of_the_atlas_share_its_cells_out():
    cells = list(atlas.cells([]))
    assert len(cells) == len(set(cells)) == 3 * 4 * len(atlas.choices())
    parts = [cells[number - 1 :: of] for number, of in map(atlas.part, ("1/3", "2/3", "3/3"))]
    assert sorted(cell for part in parts for cell in part) == sorted(cells)


def test_line_of_the_atlas_counts_the_seeds_that_learnt():
    seeds = [
        {
            "exact_match": share,
            "aer": "",
            "attention_entropy": "0.5",
            "cpu_seconds": "30",
            "machine": "this one",
        }
        for share in ("0.9", "0.4")
    ]
    line = atlas.line("model/attention=dot", seeds, {"this one": 20.0})
    assert line == (
        "| `model/attention=dot` | **65.0** (90.0, 40.0) | 1 of 2 | – | **0.50** (0.50, 0.50) "
        "| 1.50 |"
    )


def test_cost_of_the_atlas_is_compared_on_one_machine():
    trainings = [
        ("model/attention=bahdanau", "slow", "40"),
        ("model/attention=bahdanau", "fast", "10"),
        ("model/attention=dot", "slow", "20"),
        ("model/attention=dot", "fast", "10"),
        ("model/attention=dot", "without the usual choice", "99"),
    ]
    rows = [
        {
            "choice": choice,
            "machine": machine,
            "cpu_seconds": seconds,
            "exact_match": "1",
            "aer": "",
            "attention_entropy": "",
        }
        for choice, machine, seconds in trainings
    ]
    costs = atlas.costs_of_usual(rows)
    assert costs == {"slow": 40.0, "fast": 10.0}
    assert atlas.line("model/attention=dot", rows[2:], costs).endswith("| 0.75 |")


def test_only_tight_comparisons_in_64_bits_are_measured():
    difference = oracles.Difference()
    one, other = torch.zeros(2, dtype=torch.float64), torch.tensor([0.0, 3e-11]).double()
    oracles.measure(difference, one, other, {"rtol": 0, "atol": 1e-10})
    oracles.measure(difference, one.float(), other.float() + 1, {"rtol": 0, "atol": 1e-10})
    oracles.measure(difference, one, other + 1, {"rtol": 0, "atol": 1e-3})
    oracles.measure(difference, one, other + 1, {"rtol": 1e-3, "atol": 1e-10})
    assert difference == oracles.Difference(1, pytest.approx(3e-11))


def test_differences_of_records_and_infinities_are_measured():
    difference = oracles.Difference()
    found = {"weights": (np.array([1.0, -np.inf]), np.array([0.5]))}
    expected = {"weights": (np.array([1.0, -np.inf]), np.array([0.5 + 1e-12]))}
    oracles.measure(difference, found, expected, {"rtol": 0, "atol": 1e-10})
    assert difference.comparisons == 2
    assert difference.largest == pytest.approx(1e-12, rel=1e-3)


def test_row_takes_the_tests_that_name_its_choice():
    found = {
        "tests/model/test_scores.py::test_score[bahdanau]": oracles.Difference(1, 1e-15),
        "tests/model/test_scores.py::test_score[normed_bahdanau]": oracles.Difference(2, 1e-14),
        "tests/model/test_gates.py::test_gate": oracles.Difference(4, 1e-13),
    }
    of_row = oracles.of_row
    file = "tests/model/test_scores.py"
    assert of_row("`model/attention=bahdanau`", file, found).comparisons == 1
    assert of_row("`model/attention=unnamed`", file, found).comparisons == 3
    assert of_row("`model/gate=elementwise`", "tests/model/test_gates.py", found).comparisons == 4
