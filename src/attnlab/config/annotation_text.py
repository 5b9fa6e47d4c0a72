"""Annotations in words, for error messages and the page of all settings."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Le, Lt, MinLen
from pydantic.fields import FieldInfo

from attnlab.config.place import component
from attnlab.config.target import TARGET

_WORDS: dict[Any, str] = {
    Any: "a value",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    type(None): "null",
    None: "null",
}


def allowed_value(annotation: Any) -> str:
    """What a setting must be: `a Score (a mapping with _target_)`, or a plain value in words."""
    kind = component(annotation)
    if kind is None:
        return describe(annotation)
    return f"{with_article(kind)} (a mapping with {TARGET})"


def with_article(kind: type) -> str:
    """The name of a class with its article: `an Encoder`."""
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return f"{article} {kind.__name__}"


def describe(annotation: Any) -> str:
    """`Annotated[float, Field(ge=0, le=1)]` is "a number between 0 and 1"."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _describe_annotated(arguments[0], arguments[1:])
    if origin is Literal:
        return _describe_choices(arguments)
    if origin in (Union, types.UnionType):
        return _describe_union(arguments)
    if origin is dict:
        return f"a mapping of {describe(arguments[0])} to {describe(arguments[1])}"
    if origin in (list, tuple):
        entries = [describe(argument) for argument in arguments if argument is not Ellipsis]
        return f"a list of {' and '.join(entries)}"
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return "one of " + ", ".join(str(member.value) for member in annotation)
    if dataclasses.is_dataclass(annotation):
        names = [field.name for field in dataclasses.fields(annotation)]
        return f"a mapping with {', '.join(names)}"
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _describe_annotated(annotation: Any, metadata: Sequence[Any]) -> str:
    bounds = _bounds(metadata)
    # The one bound that a text has is that it is not empty.
    if annotation is str and bounds:
        return "text that is not empty"
    for item in metadata:
        if isinstance(item, FieldInfo) and item.description:
            return item.description
    return describe(annotation) + bounds


def _describe_choices(choices: Sequence[Any]) -> str:
    texts = []
    for choice in choices:
        # In YAML it is `true`, in Python `True`.
        texts.append(json.dumps(choice) if isinstance(choice, bool) else str(choice))
    return texts[0] if len(texts) == 1 else "one of " + ", ".join(texts)


def _describe_union(alternatives: Sequence[Any]) -> str:
    words = []
    for alternative in alternatives:
        # A whole number is a number.
        if alternative is int and float in alternatives:
            continue
        words.append(describe(alternative))
    if len(words) > 2 and words[-1] == _WORDS[bool]:
        return ", ".join(words)

    # With a comma before `or` where the first alternative is itself a list of words.
    has_mapping = any(get_origin(alternative) is dict for alternative in alternatives)
    separator = ", or " if has_mapping and "," in words[0] else " or "
    return separator.join(words)


def _bounds(metadata: Sequence[Any]) -> str:
    """The bounds in an `Annotated[...]`, in words: ` between 0 and 1`; empty where it has none."""
    bounds = {type(bound): bound for bound in _constraints(metadata)}
    if {Ge, Le} <= bounds.keys():
        return f" between {bounds[Ge].ge} and {bounds[Le].le}"

    words = []
    if Ge in bounds:
        words.append(f"of at least {bounds[Ge].ge}")
    if Le in bounds:
        words.append(f"of at most {bounds[Le].le}")
    if Gt in bounds:
        words.append(f"above {bounds[Gt].gt}")
    if Lt in bounds:
        words.append(f"below {bounds[Lt].lt}")
    if MinLen in bounds:
        length = bounds[MinLen].min_length
        entries = "entry" if length == 1 else "entries"
        words.append(f"with at least {length} {entries}")
    return " " + " and ".join(words) if words else ""


def _constraints(metadata: Sequence[Any]) -> Iterator[Any]:
    """The single constraints, such as `Ge(0)`, in pydantic's `Field(...)` and in groups."""
    for item in metadata:
        parts: Any = [item]
        if isinstance(item, FieldInfo):
            parts = item.metadata
        elif isinstance(item, GroupedMetadata):
            parts = item
        for part in parts:
            if isinstance(part, BaseMetadata):
                yield part
