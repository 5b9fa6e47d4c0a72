"""MLflow's own environment variables, which decide where the config names no tracker."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from attnlab.errors import ExperimentError, masked, show
from attnlab.files import project_path

_ADDRESS = re.compile(r"(https?://|sqlite:///|(postgresql|mysql|mssql)(\+\w+)?://).+")
URI_VARIABLE, EXPERIMENT_VARIABLE = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"


def uri_of_environment() -> str | None:
    """The address in MLFLOW_TRACKING_URI; None where it is not set.

    A relative sqlite path counts from the project.
    """
    address = os.environ.get(URI_VARIABLE) or None
    if address is None or not address.startswith("sqlite:///"):
        return address
    return f"sqlite:///{os.path.abspath(project_path(address.removeprefix('sqlite:///')))}"


def check_address(address: str, setting: str) -> None:
    """Raise ValueError for an address of neither a server nor a database, such as a path.

    setting: its name, for the message.
    """
    if _ADDRESS.fullmatch(address) is None:
        raise ValueError(
            f"{setting} must be the address of a server or a database: http(s)://..., "
            "sqlite:///<file>.db, postgresql+psycopg2://..., mysql+pymysql://..., "
            f"got {show(masked(address))}"
        )


def with_environment(node: Any) -> Any:
    """The section `tracking` of a config, completed by MLflow's own environment variables.

    They count where the section says nothing. The section itself stays as it is: what the
    environment says is written nowhere, and changes no identity.

    Raises ExperimentError where the address in MLFLOW_TRACKING_URI is needed and is invalid.
    """
    if not isinstance(node, Mapping):
        return node

    address = uri_of_environment()
    if address is not None and "uri" in node and node["uri"] is None:
        try:
            check_address(address, URI_VARIABLE)
        except ValueError as error:
            raise ExperimentError(str(error)) from error

    from_environment = {"uri": address, "experiment": os.environ.get(EXPERIMENT_VARIABLE) or None}
    return {
        name: from_environment.get(name) if value is None else value for name, value in node.items()
    }


def environment_note(node: Any) -> str | None:
    """A line that says which of MLflow's variables decide; None for none.

    node: the section `tracking` as written.
    """
    found = with_environment(node)
    if found == node:
        return None
    said = []
    if found["uri"] != node["uri"]:
        said.append(f"the address by {URI_VARIABLE}")
    if found["experiment"] != node["experiment"]:
        said.append(f"the experiment {found['experiment']!r} by {EXPERIMENT_VARIABLE}")
    return f"MLflow: {' and '.join(said)}, since the config names none"
