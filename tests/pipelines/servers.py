"""Servers that tests really start, each at a free port of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for_port(
    port: int, process: subprocess.Popen[bytes], log: Path, seconds: float = 240.0
) -> None:
    """Until somebody answers there; fails with the log where the process ends first."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"nobody answers at port {port}: {log.read_text()}")


@contextmanager
def mlflow_server(folder: Path, database: str, *options: str) -> Iterator[str]:
    """The address of an MLflow server that runs in `folder` as long as the block does."""
    with running(folder, "server", "--backend-store-uri", database, *options) as address:
        with urllib.request.urlopen(f"{address}/health", timeout=30) as answer:
            assert answer.read() == b"OK"
        yield address


@contextmanager
def served_model(folder: Path, tracker: str, model: str) -> Iterator[str]:
    """The address of `mlflow models serve` with a model of a tracker."""
    with running(
        folder, "models", "serve", "-m", model, "--env-manager", "local", tracker=tracker
    ) as address:
        yield address


@contextmanager
def running(folder: Path, *command: str, tracker: str | None = None) -> Iterator[str]:
    """The address of a command of MLflow that serves at a port of its own.

    Its log is `folder/server.log`.

    tracker: MLFLOW_TRACKING_URI, where the command reads it.
    """
    port, log = free_port(), folder / "server.log"
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
    # It starts PATH's uvicorn
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    if tracker is not None:
        environment["MLFLOW_TRACKING_URI"] = tracker
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder, stdout=out, stderr=out, start_new_session=True, env=environment,
        )  # fmt: skip
        try:
            wait_for_port(port, process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a server and its workers, by force where a busy machine keeps it from ending itself."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
