"""The metric spool: every metric of a run in one append-only file, independent of a tracker.

A line is a JSON object `{"time": unix ms, "step": ..., "epoch": ..., "metrics": {name: value}}`;
`step` is the number of optimiser steps taken. Values that JSON lacks are written as the strings
"nan", "inf" and "-inf". A killed process leaves at most one incomplete line, at the end; readers
ignore it and the next writer removes it.
"""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from attnlab.errors import ExperimentError
from attnlab.files import atomic_file

# In the folder of an experiment: what is known of its run, and there its metrics.
RUN_FOLDER = "run"
SPOOL_NAME = f"{RUN_FOLDER}/metrics.jsonl"
# In its folder of checkpoints.
LAST = "last.ckpt"
BEFORE_LAST = "before_last.ckpt"

# Metrics with these prefixes differ from run to run: they reach the tracker, but not the history.
VOLATILE = ("time/", "speed/", "system/")


@dataclass(frozen=True)
class Record:
    """The metrics that were logged together."""

    time: int
    step: int
    epoch: int | None
    metrics: dict[str, float]


class HistoryRow(NamedTuple):
    """One value of one metric, without its time: the same run gives the same rows."""

    step: int
    epoch: int | None
    name: str
    value: float


class MetricSpool:
    """Appends records to a file, flushing each, and reads them.

    remedy: what the error about a damaged file suggests.
    """

    def __init__(self, path: Path, remedy: str = "train it again with rerun=true") -> None:
        self.path = Path(path)
        self.remedy = remedy
        self._file: BinaryIO | None = None

    def append(self, metrics: Mapping[str, float], step: int, epoch: int | None = None) -> None:
        """Write one record with the current time.

        Raises:
            ExperimentError: the file cannot be written (a full disk, a read-only folder).
        """
        record = {
            "time": time.time_ns() // 1_000_000,
            "step": int(step),
            "epoch": epoch,
            "metrics": {name: _json_value(float(value)) for name, value in metrics.items()},
        }
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
        try:
            file = self._opened()
            is_removed = os.fstat(file.fileno()).st_nlink == 0
            if is_removed:
                raise FileNotFoundError(
                    errno.ENOENT, "it was removed; the same command trains again"
                )
            file.write(line.encode())
            file.flush()
        except OSError as error:
            raise ExperimentError(
                f"the metrics could not be written to {self.path}: {error.strerror}"
            ) from error

    def read(self, up_to: int | None = None, skip: int = 0) -> tuple[list[Record], int]:
        """The complete records before byte `up_to`, and the offset after the last one.

        skip: leave out so many of the first records, unread.

        Raises:
            ExperimentError: one of the others is damaged.
        """
        if not self.path.exists():
            return [], 0
        with self.path.open("rb") as file:
            data = file.read() if up_to is None else file.read(up_to)
        end = data.rfind(b"\n") + 1
        lines = data[:end].splitlines(keepends=True)

        records = []
        start = sum(len(line) for line in lines[:skip])
        for line in lines[skip:]:
            records.append(self._parsed(line, start))
            start += len(line)
        return records, start

    def size(self) -> int:
        """The offset after the last complete record.

        All before it is synced to disk and survives a power failure.
        """
        if not self.path.exists():
            return 0
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        return _complete(self.path)

    def cut(self, offset: int) -> None:
        """Remove all after byte `offset`, to resume from a checkpoint.

        Raises:
            ExperimentError: the file was damaged since then, which is checked before training
                resumes.
        """
        self.close()
        _, end = self.read(up_to=offset)
        if end != offset:
            raise ExperimentError(
                f"{self.path} is damaged: no record ends at the offset of the checkpoint; "
                f"{self.remedy}"
            )
        if self.path.exists() and offset < self.path.stat().st_size:
            os.truncate(self.path, offset)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _opened(self) -> BinaryIO:
        """The file, open to append after its last complete record."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                os.truncate(self.path, _complete(self.path))
            self._file = self.path.open("ab")
        return self._file

    def _parsed(self, line: bytes, start: int) -> Record:
        """A line that starts at byte `start`."""
        try:
            fields = json.loads(line.decode())
            metrics = {name: float(value) for name, value in fields["metrics"].items()}
            return Record(int(fields["time"]), int(fields["step"]), fields["epoch"], metrics)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            raise ExperimentError(
                f"{self.path} is damaged: invalid record at byte {start}; {self.remedy}"
            ) from None


def history(path: Path) -> Iterator[HistoryRow]:
    """The learning curves as a long table, without volatile metrics.

    Records are in file order, names sorted.
    """
    records, _ = MetricSpool(path).read()
    for record in records:
        for name in sorted(record.metrics):
            if not name.startswith(VOLATILE):
                yield HistoryRow(record.step, record.epoch, name, record.metrics[name])


def write_history(spool: Path, path: Path) -> None:
    """Write the learning curves as CSV: `step, epoch, name, value`.

    The same training gives the same bytes.
    """
    with atomic_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HistoryRow._fields)
        writer.writerows(history(spool))


def _json_value(value: float) -> float | str:
    """The number as JSON can hold it: "nan", "inf" and "-inf" are strings."""
    return value if math.isfinite(value) else str(value)


def _complete(path: Path) -> int:
    """The length of the file without an incomplete last line."""
    return path.read_bytes().rfind(b"\n") + 1
