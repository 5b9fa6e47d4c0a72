"""Check of plain values, such as numbers and lists of text, against their annotations."""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from attnlab.config.annotation_text import describe
from attnlab.errors import show

LARGEST_WHOLE = 2**63 - 1
LARGEST = 3.4028234663852886e38  # of single precision


def plain_adapter(annotation: Any) -> TypeAdapter[Any] | None:
    """What checks plain values of this type; None for a type that no plain value has."""
    try:
        return _adapter(annotation, repr(annotation))
    except (PydanticUserError, NameError):
        return None
    except TypeError:  # an annotation with metadata that cannot be hashed
        return _adapter.__wrapped__(annotation, "")


@functools.cache
def _adapter(annotation: Any, text: str) -> TypeAdapter[Any]:
    """text: of the annotation; unions are equal in any order, which pydantic tries them in."""
    return TypeAdapter(annotation, config=ConfigDict(allow_inf_nan=False))


def validated(value: Any, adapter: TypeAdapter[Any]) -> Any:
    """The value, with tuples and paths made from lists and text.

    Raises ValidationError, or TypeError for a value that JSON does not have.
    """
    # Strict JSON mode: no True for 1 and no "3" for 3, but lists for tuples and text for paths.
    return adapter.validate_json(json.dumps(value), strict=True)


def plain_value_problems(
    value: Any, annotation: Any, path: str, error: ValidationError | TypeError
) -> list[str]:
    """A problem for each entry that `validated` refused, or one for the value as a whole."""
    locations: list[Sequence[int | str]] = [()]
    if isinstance(error, ValidationError):
        locations = [details["loc"] for details in error.errors()]

    # pydantic reports each alternative of a union, so that one entry may come several times.
    problems: dict[str, str] = {}
    for location in locations:
        inner, allowed, given = _refused_entry(value, annotation, location)
        problems[inner] = f"{path}{inner} must be {describe(allowed)}, got {show(given)}"
    if "" in problems:
        return [problems[""]]
    return list(problems.values())


def number_problems(value: Any, path: str) -> list[str]:
    """A problem for each number of a value that is beyond those that tensors hold."""
    if isinstance(value, Mapping):
        entries = [(f"{path}.{name}", each) for name, each in value.items()]
    elif isinstance(value, list | tuple):
        entries = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
    else:
        return _number_problem(value, path)

    problems = []
    for place, each in entries:
        problems += number_problems(each, place)
    return problems


def _number_problem(value: Any, path: str) -> list[str]:
    if isinstance(value, int) and not -LARGEST_WHOLE <= value <= LARGEST_WHOLE:
        return [f"{path} must be at most {LARGEST_WHOLE} in size, got {show(value)}"]
    if isinstance(value, float) and abs(value) > LARGEST:
        return [f"{path} must be at most 3.4e+38 in size, as single precision, got {show(value)}"]
    return []


def _refused_entry(value: Any, annotation: Any, steps: Sequence[int | str]) -> tuple[str, Any, Any]:
    """(path below the value, annotation, value) of the entry that pydantic rejected.

    The path is `.tags`, `[0]`, or empty for the whole value.

    steps: the location that pydantic reports. It also names the alternatives of a union, which are
        not entries.
    """
    inner = ""
    for step in steps:
        of_entries = _annotation_of_entries(annotation, step)
        is_key = isinstance(value, Mapping) and step in value
        is_index = isinstance(value, list | tuple) and isinstance(step, int) and step < len(value)
        if of_entries is None or not (is_key or is_index):
            continue
        inner += f".{step}" if is_key else f"[{step}]"
        value, annotation = value[step], of_entries
    return inner, annotation, value


def _annotation_of_entries(annotation: Any, step: int | str) -> Any:
    """The annotation of a mapping's entries (for a key) or a list's entries (for an index).

    None if there are no entries.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotation_of_entries(arguments[0], step)
    if origin in (Union, types.UnionType):
        for argument in arguments:
            found = _annotation_of_entries(argument, step)
            if found is not None:
                return found
        return None
    if isinstance(step, str):
        return arguments[1] if origin is dict else None
    if origin is tuple and Ellipsis not in arguments:
        return arguments[step] if step < len(arguments) else None
    return arguments[0] if origin in (list, tuple) else None
