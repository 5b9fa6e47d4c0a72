"""An annotation in words: what a config value may be."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Le, Lt, MinLen
from pydantic.fields import FieldInfo

_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    type(None): "null",
}


def describe(annotation: Any) -> str:
    """`Annotated[float, Field(ge=0, le=1)]` is "a number between 0 and 1"."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        if arguments[0] is str and _bounds(list(arguments[1:])):
            return "text that is not empty"
        return describe(arguments[0]) + _bounds(list(arguments[1:]))
    if origin is Literal:
        choices = [json.dumps(choice) if isinstance(choice, bool) else str(choice) for choice in arguments]
        return choices[0] if len(choices) == 1 else "one of " + ", ".join(choices)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(argument) for argument in arguments)
    if origin is dict:
        return f"a mapping of {describe(arguments[0])} to {describe(arguments[1])}"
    if origin in (list, tuple):
        inner = " and ".join(describe(argument) for argument in arguments if argument is not Ellipsis)
        return f"a list of {inner}"
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _bounds(metadata: list[Any]) -> str:
    bounds: dict[type, Any] = {}
    for item in metadata:
        parts = item.metadata if isinstance(item, FieldInfo) else item if isinstance(item, GroupedMetadata) else [item]
        bounds |= {type(part): part for part in parts if isinstance(part, BaseMetadata)}
    words = []
    if Ge in bounds and Le in bounds:
        words.append(f"between {bounds[Ge].ge} and {bounds[Le].le}")
    else:
        words += [f"of at least {bounds[Ge].ge}"] if Ge in bounds else []
        words += [f"of at most {bounds[Le].le}"] if Le in bounds else []
    words += [f"above {bounds[Gt].gt}"] if Gt in bounds else []
    words += [f"below {bounds[Lt].lt}"] if Lt in bounds else []
    words += [f"with at least {bounds[MinLen].min_length} entry"] if MinLen in bounds else []
    return " " + " and ".join(words) if words else ""
