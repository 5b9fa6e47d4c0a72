"""What differs between a section of the config and the file of its choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.composition.yaml_text import parse_yaml
from composed import CONF


def changed_values(group: str, choice: str, section: Any) -> dict[str, Any]:
    """{dotted key: value} of a section where it differs from the choice's file; empty where conf/ has no such file."""
    file = CONF / group / f"{choice}.yaml"
    if not file.is_file():
        return {}
    return _different(parse_yaml(file.read_text(encoding="utf-8")), section)


def _different(written: Any, section: Any, prefix: str = "") -> dict[str, Any]:
    if not (isinstance(written, Mapping) and isinstance(section, Mapping)):
        return {}
    different: dict[str, Any] = {}
    for key in written.keys() & section.keys():
        there, here = written[key], section[key]
        if isinstance(there, Mapping):
            different |= _different(there, here, f"{prefix}{key}.")
        elif there != here and "${" not in str(there):
            different[f"{prefix}{key}"] = here
    return dict(sorted(different.items()))
