"""JSON files that may come from anybody."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """What the file holds; raises OSError where there is no such file, ValueError where it is no usual JSON."""
    check_regular(path)
    return parse_json(path.read_text(encoding="utf-8"))


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
