"""Processor, memory, disk, network and GPU while a run lasts: every two seconds at first, seldom later."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from mlflow.environment_variables import MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL
from mlflow.system_metrics.metrics.base_metrics_monitor import BaseMetricsMonitor
from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
from mlflow.system_metrics.metrics.disk_monitor import DiskMonitor
from mlflow.system_metrics.metrics.gpu_monitor import GPUMonitor
from mlflow.system_metrics.metrics.network_monitor import NetworkMonitor

from attnlab.errors import ExperimentError
from attnlab.training.spool import MetricSpool

FIRST_INTERVAL = 2.0  # seconds: a run of twenty seconds has a curve too
LATER_INTERVAL = 15.0  # and one of a night has not a million points
FIRST_SAMPLES = 60


class SystemMetrics(threading.Thread):
    """Writes samples of MLflow's monitors to a spool, until `finish`; steps go on where a run is opened again."""

    def __init__(self, path: Path) -> None:
        super().__init__(name="system metrics", daemon=True)
        self._spool = MetricSpool(path, "remove it")
        self._step = max((record.step + 1 for record in self._spool.read()[0]), default=0)
        self._over = threading.Event()
        self._monitors: list[BaseMetricsMonitor] = [CPUMonitor(), DiskMonitor(), NetworkMonitor()]
        with contextlib.suppress(Exception):  # of whatever kind, where there is no GPU of NVIDIA's
            self._monitors.append(GPUMonitor())

    def run(self) -> None:
        chosen = MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL.get()
        samples = 0
        while not self._over.wait(chosen or (FIRST_INTERVAL if samples < FIRST_SAMPLES else LATER_INTERVAL)):
            samples += 1
            try:
                self._spool.append(self._sample(), self._step)
            except ExperimentError:  # a full disk, which the training reports
                return
            self._step += 1

    def finish(self) -> None:
        """Take no further sample."""
        self._over.set()
        self.join()
        self._spool.close()

    def _sample(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for monitor in self._monitors:
            monitor.collect_metrics()
            found.update({f"system/{name}": value for name, value in monitor.aggregate_metrics().items()})
            monitor.clear_metrics()
        return found
