"""Runs: their folders on disk, their copies in MLflow, and sweeps.

No other room imports mlflow.
All that is known of a run is first on disk, in its run folder; `upload_run` uploads what MLflow
lacks.
"""

import os

# MLflow's variables, where the user set none: no telemetry, short waits, a quiet terminal.
DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # it would show the credentials in an address
    # A dead server costs at most 20 seconds a call instead of four minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    # attnlab writes no pickles, and none that others wrote are loaded.
    "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}

# Before a module of this package imports mlflow, which reads some at import
for _name, _value in DEFAULTS.items():
    os.environ.setdefault(_name, _value)
