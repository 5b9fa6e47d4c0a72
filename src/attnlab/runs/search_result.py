"""What a search over seeds has found: its best settings, each with its mean and spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from attnlab.files import read_own_record, write_json

_RECORD = "search.json"


@dataclass(frozen=True)
class FoundSetting:
    """A setting that was trained with all of its seeds.

    trial: its number in the study.
    overrides: what varies, with the values of this setting.
    values: of each objective, one for each seed.
    """

    trial: int
    overrides: list[str]
    values: list[list[float]]

    @property
    def means(self) -> list[float]:
        return [statistics.fmean(each) for each in self.values]

    @property
    def spreads(self) -> list[float | None]:
        """The standard deviation over the seeds; None for one seed, of which there is none."""
        return [statistics.stdev(each) if len(each) > 1 else None for each in self.values]


@dataclass(frozen=True)
class SearchResult:
    """A search, of all of its leaders.

    study: its name.
    objectives: their names, in the order of the values.
    seeds: trained for a trial.
    complete, pruned, failed: trials.
    best: the best setting by its mean; with two objectives, all that no other one beats in both.
    spared: trainings that the pruned trials did without.
    """

    study: str
    objectives: list[str]
    seeds: int
    complete: int
    pruned: int
    failed: int
    best: list[FoundSetting]
    spared: int = 0

    def write(self, folder: Path) -> None:
        """Write it into the folder of the sweep."""
        write_json(folder / _RECORD, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> SearchResult | None:
        """The result of a sweep; None where its points are no search's."""
        path = folder / _RECORD
        return read_own_record(path, cls, "remove it") if path.is_file() else None

    @property
    def trials_line(self) -> str:
        """`20 trials: 12 complete, 7 pruned, 1 failed`."""
        total = self.complete + self.pruned + self.failed
        states = f"{self.complete} complete, {self.pruned} pruned, {self.failed} failed"
        return f"{total} trial{'' if total == 1 else 's'}: {states}"

    def lines(self) -> list[str]:
        """The best settings, a line each: their values over the seeds, and the overrides."""
        return [f"{self._values(each)}: {' '.join(each.overrides)}" for each in self.best]

    def _values(self, setting: FoundSetting) -> str:
        shown = []
        for name, mean, spread in zip(self.objectives, setting.means, setting.spreads, strict=True):
            shown.append(f"{name} {_with_spread(mean, spread)}")
        seeds = len(setting.values[0])
        return f"{', '.join(shown)} ({seeds} seed{'' if seeds == 1 else 's'})"

    def metrics(self) -> dict[str, float]:
        """Of the best setting, for the tracker; empty where two objectives have several."""
        if len(self.best) != 1 or len(self.objectives) != 1:
            return {}
        (best,) = self.best
        found = {"search/best_mean": best.means[0], "search/best_seeds": float(self.seeds)}
        if best.spreads[0] is not None:
            found["search/best_spread"] = best.spreads[0]
        return found


def _with_spread(mean: float, spread: float | None) -> str:
    return f"{mean:.4g}" if spread is None else f"{mean:.4g} ± {spread:.2g}"


def columns(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """The values by objective, given a row for each seed."""
    return [list(column) for column in zip(*rows, strict=True)]
