"""Jobs of a sweep as tasks of Ray, on a cluster that is there or on this machine alone."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from attnlab.errors import ExperimentError
from attnlab.runs.sweep_job import LEADER_VARIABLE

# What of this process's environment a job needs; a node's own has the rest.
_PASSED_ON = ("ATTNLAB_", "MLFLOW_", "HYDRA_", "HF_", "OMP_", "PYTHONPATH")

_PATIENCE = 10.0  # seconds for a cluster to answer


class RayTasks:
    """A connection to Ray, for as long as the block runs.

    Args:
        address: of the cluster; None for the one that runs on this machine, or else for one of this
            machine alone that ends with the block.
        resources: of each task, as `ray.remote` takes them.
        retries: of a task whose process or node died.

    Raises ExperimentError where Ray is not installed, or no cluster answers.
    """

    def __init__(self, address: str | None, resources: Mapping[str, Any], retries: int) -> None:
        self._address, self._resources, self._retries = address, dict(resources), retries

    def __enter__(self) -> Self:
        check_ray(self._address)
        import ray

        passed_on = {
            name: value
            for name, value in os.environ.items()
            # Only processes of the leader's machine can watch it; Ray ends the others with it.
            if name.startswith(_PASSED_ON) and name != LEADER_VARIABLE
        }
        try:
            ray.init(
                address=self._address,
                include_dashboard=False if self._address is None else None,
                # Jobs write their output to files of their own.
                log_to_driver=False,
                logging_level=logging.ERROR,
                runtime_env={"env_vars": passed_on},
            )
        except (ConnectionError, ValueError) as error:
            raise _no_answer(error) from error
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        ray.shutdown()

    def share(self, value: Any) -> Any:
        """A reference to a value that tasks are given in place of it, so that it is sent once."""
        import ray

        return ray.put(value)

    def calls(self, function: Callable[..., Any]) -> RunningCalls:
        """Calls of a function on the cluster, none of which has started."""
        import ray

        return RunningCalls(ray.remote(**self._resources, max_retries=self._retries)(function))


class RunningCalls:
    """Calls of a function that run on a cluster; its length is their number.

    task: the function, as Ray has it.
    """

    def __init__(self, task: Any) -> None:
        self._task = task
        self._running: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._running)

    def start(self, number: int, arguments: Sequence[Any]) -> None:
        self._running[self._task.remote(*arguments)] = number

    def ended(self) -> tuple[int, Any, str | None]:
        """Wait for one call: -> its number, what it returned, and None, or why it has no result."""
        import ray

        (ended,), _ = ray.wait(list(self._running), num_returns=1)
        number = self._running.pop(ended)
        try:
            return number, ray.get(ended), None
        except ray.exceptions.RayError as error:
            return number, None, f"Ray: {str(error).strip().splitlines()[-1]}"


def check_ray(address: str | None) -> None:
    """Raise ExperimentError where Ray is not installed, or nothing listens at this address."""
    try:
        import ray  # noqa: F401
    except ImportError as error:
        raise ExperimentError(
            "launcher: Ray is not installed; pip install 'attnlab[ray]'"
        ) from error
    if address is not None:
        _check_answers(address)


def _check_answers(address: str) -> None:
    """Raise ExperimentError where nothing listens at a `host:port`; Ray would try for minutes."""
    place = re.fullmatch(r"(?:ray://)?(?P<host>.+):(?P<port>\d+)", address)
    if place is None:  # such as `auto`, which Ray looks up on this machine
        return
    try:
        socket.create_connection((place["host"], int(place["port"])), _PATIENCE).close()
    except OSError as error:
        raise _no_answer(error) from error


def _no_answer(error: Exception) -> ExperimentError:
    reason = " ".join(str(error).split())
    return ExperimentError(f"launcher.address: no cluster of Ray answers ({reason})")
