"""MLflow's environment variables, where the user set none: no telemetry, short waits, a quiet terminal."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"

DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # it would show the credentials in an address
    # A dead server costs half a minute a call instead of four.
    _RETRIES: "2",
    _TIMEOUT: "10",
    # We bring no pickles, and nobody else's shall run here.
    "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}

_lock = threading.Lock()


def set_defaults() -> None:
    """Set what the user did not."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


@contextmanager
def impatient() -> Iterator[None]:
    """For the first contact: one short retry, unless the user set the variables."""
    with _lock:
        # Ours are known by their values: a worker inherits them from the process that started it.
        quick = {
            name: value
            for name, value in {_RETRIES: "1", _TIMEOUT: "5"}.items()
            if os.environ.get(name) == DEFAULTS[name]
        }
        os.environ.update(quick)
        try:
            yield
        finally:
            os.environ.update({name: DEFAULTS[name] for name in quick})
