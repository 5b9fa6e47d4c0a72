"""Processor, memory, disk and network while a run lasts: every two seconds at first, seldom later."""

from __future__ import annotations

import os
from typing import Any

from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

FIRST_INTERVAL = 2.0  # seconds: a run of twenty seconds has a curve too
LATER_INTERVAL = 15.0  # and one of a night has not a million points
FIRST_SAMPLES = 60


class SystemMetrics(SystemMetricsMonitor):
    """MLflow's monitor with a growing interval, unless MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL is set."""

    def __init__(self, run_id: str, tracking_uri: str) -> None:
        super().__init__(run_id, sampling_interval=FIRST_INTERVAL, resume_logging=True, tracking_uri=tracking_uri)
        self._published = 0

    def publish_metrics(self, metrics: dict[str, Any]) -> None:
        super().publish_metrics(metrics)
        self._published += 1
        if self._published == FIRST_SAMPLES and "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL" not in os.environ:
            self.sampling_interval = LATER_INTERVAL
