"""The metric spool: every metric of a run in one append-only file, whatever becomes of a tracker.

A line is a JSON object `{"time": unix ms, "step": ..., "epoch": ..., "metrics": {name: value}}`; `step` is the number
of optimiser steps taken.
Values that JSON lacks are written as the texts "nan", "inf" and "-inf". A process that dies leaves at most
one torn line, at the end; readers ignore it and the next writer cuts it off.
"""

from __future__ import annotations

import errno
import json
import math
import os
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from attnlab.errors import ExperimentError
from attnlab.files import parse_json

# In the folder of an experiment: what is known of its run, and there its metrics.
RUN_FOLDER = "run"
SPOOL_NAME = f"{RUN_FOLDER}/metrics.jsonl"

# Metrics under these names differ from run to run: they reach the tracker, but not the history.
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
    """Appends records to a file, flushed one by one, and reads them from any offset on.

    remedy: what is said to somebody whose file is damaged.
    """

    def __init__(self, path: Path, remedy: str = "train it again with rerun=true") -> None:
        self.path = Path(path)
        self.remedy = remedy
        self._file: BinaryIO | None = None
        self._process = -1

    def append(self, metrics: Mapping[str, float], step: int, epoch: int | None = None) -> None:
        """Write one record, stamped with the present time.

        Raises:
            ExperimentError: the file cannot be written (a full disk, a read-only folder).
        """
        values = {name: _to_json(float(value)) for name, value in metrics.items()}
        record = {"time": time.time_ns() // 1_000_000, "step": int(step), "epoch": epoch, "metrics": values}
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
        try:
            file = self._opened()
            if not os.fstat(file.fileno()).st_nlink:
                raise FileNotFoundError(errno.ENOENT, "somebody removed it; the same command trains again")
            file.write(line.encode())
            file.flush()
        except OSError as error:
            raise ExperimentError(f"the metrics could not be written to {self.path}: {error.strerror}") from error

    def read(self, offset: int = 0, up_to: int | None = None) -> tuple[list[Record], int]:
        """The whole records from byte `offset` on (before `up_to`), and the offset behind the last one.

        Raises:
            ExperimentError: one of them is damaged.
        """
        if not self.path.exists():
            return [], offset
        with self.path.open("rb") as file:
            file.seek(offset)
            data = file.read() if up_to is None else file.read(max(0, up_to - offset))
        end = data.rfind(b"\n") + 1
        records, start = [], offset
        for line in data[:end].splitlines(keepends=True):
            records.append(self._parsed(line, start))
            start += len(line)
        return records, start

    def size(self) -> int:
        """The offset behind the last whole record. What lies before it is on the disk, even should the power fail."""
        if not self.path.exists():
            return 0
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        return _whole(self.path)

    def cut(self, offset: int) -> None:
        """Forget what was written behind byte `offset`, as a run does that goes back to a checkpoint.

        Raises:
            ExperimentError: the file has been damaged since. Found only at the end, a whole training would be lost.
        """
        self.close()
        if self.read(up_to=offset)[1] != offset:
            raise ExperimentError(
                f"{self.path} is damaged: no record ends where the checkpoint was taken; {self.remedy}"
            )
        if self.path.exists() and offset < self.path.stat().st_size:
            os.truncate(self.path, offset)

    def close(self) -> None:
        if self._file is not None and self._process == os.getpid():
            self._file.close()
        self._file = None

    def _opened(self) -> BinaryIO:
        # A forked process opens the file anew: it shares no buffer with its parent.
        if self._file is None or self._process != os.getpid():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                os.truncate(self.path, _whole(self.path))
            self._file = self.path.open("ab")
            self._process = os.getpid()
        return self._file

    def _parsed(self, line: bytes, start: int) -> Record:
        """A line that starts at byte `start`."""
        try:
            fields = parse_json(line.decode())
            metrics = {name: float(value) for name, value in fields["metrics"].items()}
            time, step, epoch = (fields[name] for name in ("time", "step", "epoch"))
            if not (isinstance(time, int) and isinstance(step, int) and isinstance(epoch, int | None)):
                raise TypeError
            return Record(time, step, epoch, metrics)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            raise ExperimentError(
                f"{self.path} is damaged: what starts at byte {start} is no record of metrics; {self.remedy}"
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None, "_process": -1}


class SpoolLogger(Logger):
    """Lightning's metrics, written to the spool by the first process alone; hyperparameters are ignored.

    Lightning numbers steps from 0. The spool counts the optimiser steps taken, from 1, as the progress lines, the
    checkpoints and the heat maps do.
    """

    def __init__(self, spool: MetricSpool) -> None:
        super().__init__()
        self.spool = spool

    @property
    def name(self) -> str:
        return "spool"

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        pass

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        values = dict(metrics)
        epoch = values.pop("epoch", None)  # Lightning puts it among the metrics
        if values:
            self.spool.append(values, (step or 0) + 1, None if epoch is None else int(epoch))

    @rank_zero_only
    def finalize(self, status: str) -> None:
        self.spool.close()


def history(path: Path) -> Iterator[HistoryRow]:
    """The spool as a long table: records in their order, the names of a record sorted, times left out."""
    records, _ = MetricSpool(path).read()
    for record in records:
        for name in sorted(record.metrics):
            if not name.startswith(VOLATILE):
                yield HistoryRow(record.step, record.epoch, name, record.metrics[name])


def _to_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _whole(path: Path) -> int:
    """The length of the file without a torn last line."""
    return path.read_bytes().rfind(b"\n") + 1
