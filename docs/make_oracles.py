"""Measure how far the code is from the formulas of its tests: the table in docs/oracles.md.

    python docs/make_oracles.py             # runs the tests that docs/mechanisms.md names
    python docs/make_oracles.py gates       # only those of files with this in their names, printed

A test computes a mechanism a second time, in NumPy or with another library, from the equation of
its source, and asks that both agree. Here each such comparison is measured as well. Counted are
those in 64 bits that allow at most 1e-9, without a relative part: the others compare draws with
their means, or numbers in 32 bits.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from measured_page import ROOT, mechanism_rows, write_measured

PAGE = ROOT / "docs" / "oracles.md"
TIGHT = 1e-9


@dataclass
class Difference:
    """What one test compared: how many times, and the largest difference."""

    comparisons: int = 0
    largest: float = 0.0

    def add(self, other: Difference) -> None:
        self.comparisons += other.comparisons
        self.largest = max(self.largest, other.largest)


class Measuring:
    """A plugin of pytest that measures the comparisons of each test."""

    def __init__(self) -> None:
        self.found: dict[str, Difference] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        difference = self.found.setdefault(item.nodeid, Difference())
        of_torch, of_numpy = torch.testing.assert_close, np.testing.assert_allclose

        def close(actual: Any, expected: Any, **options: Any) -> None:
            measure(difference, actual, expected, options)
            of_torch(actual, expected, **options)

        def allclose(actual: Any, desired: Any, **options: Any) -> None:
            measure(difference, actual, desired, options)
            of_numpy(actual, desired, **options)

        with (
            patch.object(torch.testing, "assert_close", close),
            patch.object(np.testing, "assert_allclose", allclose),
        ):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def measure(difference: Difference, found: Any, expected: Any, options: Mapping[str, Any]) -> None:
    """Add a comparison, where it is a tight one in 64 bits."""
    if options.get("rtol") != 0 or not 0 < options.get("atol", 1) <= TIGHT:
        return
    for one, other in pairs(found, expected):
        a, b = as_array(one), as_array(other)
        if a is None or b is None or a.shape != b.shape:
            continue
        seen = np.isfinite(a) & np.isfinite(b)
        if seen.any():
            difference.add(Difference(1, float(np.abs(a[seen] - b[seen]).max())))


def pairs(found: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    """What `assert_close` compares one by one."""
    if isinstance(found, Mapping):
        for name in found:
            yield from pairs(found[name], expected[name])
    elif isinstance(found, list | tuple):
        for one, other in zip(found, expected, strict=False):
            yield from pairs(one, other)
    else:
        yield found, expected


def as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """The numbers of a comparison in 64 bits; None for others."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy() if value.dtype == torch.float64 else None
    if value is None:
        return None
    array = np.asarray(value)
    return array if array.dtype == np.float64 else None


def of_row(config: str, file: str, found: Mapping[str, Difference]) -> Difference:
    """What the tests of a file compared that name a choice of the row, or else all of them."""
    in_file = {test: each for test, each in found.items() if test.startswith(f"{file}::")}
    names = [choice for _, choice in re.findall(r"([a-z_/]+)=([a-z_0-9]+)", config)]
    named = [
        each
        for test, each in in_file.items()
        if any(
            re.search(rf"(?<![a-z_]){name}(?![a-z_0-9])", test.partition("::")[2]) for name in names
        )
        and each.comparisons
    ]
    total = Difference()
    for each in named or in_file.values():
        total.add(each)
    return total


def table(rows: Sequence[Sequence[str]], found: Mapping[str, Difference]) -> list[str]:
    lines = [
        "| mechanism | source | test | comparisons | largest difference |",
        "| --- | --- | --- | --- | --- |",
    ]
    for mechanism, _, source, config, test in rows:
        file = test.strip("`")
        difference = of_row(config, file, found)
        if difference.comparisons:
            of = f"{difference.comparisons:,} | {difference.largest:.1e}"
            lines.append(f"| {mechanism} | {source} | {test} | {of} |")
    return lines


def main() -> int:
    wanted = sys.argv[1:]
    rows = [row for row in mechanism_rows() if not wanted or any(word in row[4] for word in wanted)]
    files = sorted({row[4].strip("`") for row in rows})
    measuring = Measuring()
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *files]
    pytest.main([*options, "-m", "not slow"], plugins=[measuring])
    if measuring.failed:
        print(f"failed, nothing was written: {', '.join(measuring.failed)}", file=sys.stderr)
        return 1
    lines = table(rows, measuring.found)
    if wanted:
        print("\n".join(lines))
        return 0
    machine = f"torch {torch.__version__}, NumPy {np.__version__}, {platform.machine()}"
    write_measured(PAGE, "oracles", [*lines, "", f"Measured with {machine}."])
    return 0


if __name__ == "__main__":
    sys.exit(main())
