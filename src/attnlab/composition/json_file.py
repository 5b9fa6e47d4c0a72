"""JSON files that may come from anybody, or be damaged."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from attnlab.composition.error import ExperimentError

RecordT = TypeVar("RecordT")


def read_json(path: Path) -> Any:
    """What the file holds; raises OSError where there is no such file, ValueError where it is no usual JSON."""
    check_regular(path)
    return parse_json(path.read_text(encoding="utf-8"))


def read_own_json(path: Path, remedy: str) -> dict[str, Any]:
    """The fields of a file that this program wrote.

    remedy: what to do where it is damaged.

    Raises:
        ExperimentError: it cannot be read, or holds something else.
    """
    try:
        fields = read_json(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ExperimentError(f"{path} is damaged ({reason}); {remedy}") from None
    if not isinstance(fields, dict):
        raise ExperimentError(f"{path} is damaged (it holds no JSON object); {remedy}")
    return fields


def read_own_record(path: Path, kind: type[RecordT], remedy: str) -> RecordT:
    """As `read_own_json`, as a dataclass: a field that is missing or of another type is damage too."""
    fields = read_own_json(path, remedy)
    try:
        return TypeAdapter(kind).validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ExperimentError(f"{path} is damaged ({place}: {first['msg']}); {remedy}") from None


def parse_json(text: str) -> Any:
    """What the text holds; raises ValueError where it is no JSON of usual depth."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_regular(path: Path) -> None:
    """Raise OSError for a device or a pipe, which could be read without an end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
