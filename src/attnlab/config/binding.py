"""Bind config nodes to constructors: the constructor's signature is the schema.

Every node with a `_target_` is checked against the class's signature before anything is read or built, and all
problems are reported together, each with its config path, what was given and what is allowed.
"""

from __future__ import annotations

import difflib
import inspect
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Le, Lt, MinLen
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from attnlab.config.allowed import PACKAGE, allowed_class, allowed_targets
from attnlab.config.part import RUNTIME_ARGUMENTS, Part, construct
from attnlab.errors import ExperimentError, show

TARGET = "_target_"


def bind_sections(config: Mapping[str, Any], sections: Mapping[str, Any]) -> dict[str, Any]:
    """Bind the top level of a config, `sections` being the annotation of each key.

    Returns each section's value: an object, a Part, or a plain value. Raises ExperimentError with every problem.
    """
    problems: list[str] = []
    problems += [_unknown(key, "", list(sections)) for key in config if key not in sections]
    problems += [
        f"{key} is missing; it must be {_kind(annotation)}" for key, annotation in sections.items() if key not in config
    ]
    bound = {
        key: _bind_value(config[key], annotation, key, problems)
        for key, annotation in sections.items()
        if key in config
    }
    if problems:
        raise ExperimentError(problems)
    return bound


def bind(node: Any, kind: type, path: str = "") -> Any:
    """Bind one node with a `_target_` that must be a `kind`; raises ExperimentError with every problem."""
    problems: list[str] = []
    bound = _bind_node(node, kind, path, problems)
    if problems:
        raise ExperimentError(problems)
    return bound


def _bind_node(node: Any, kind: type, path: str, problems: list[str]) -> Any:
    target = node.get(TARGET) if isinstance(node, Mapping) else None
    if target is None:
        problems.append(f"{path} must be {_kind(kind)}, got {show(node)}")
        return None
    found = allowed_class(target, kind)
    if found is None:
        allowed = ", ".join(allowed_targets(kind))
        problems.append(f"{path}.{TARGET} must be one of {allowed}; got {show(target)}")
        return None

    before = len(problems)
    hints = get_type_hints(found.__init__, include_extras=True)  # type: ignore[misc]
    parameters = list(inspect.signature(found).parameters.values())
    runtime = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert runtime <= RUNTIME_ARGUMENTS, f"{target} asks for {runtime - RUNTIME_ARGUMENTS} at run time"
    configurable = [p for p in parameters if p.name not in runtime]

    names = [p.name for p in configurable]
    problems += [_unknown(key, path, names) for key in node if key != TARGET and key not in names]
    values = {}
    for parameter in configurable:
        place = f"{path}.{parameter.name}" if path else parameter.name
        if parameter.name in node:
            values[parameter.name] = _bind_value(node[parameter.name], hints[parameter.name], place, problems)
        elif parameter.default is parameter.empty:
            problems.append(f"{place} is missing; it must be {_kind(hints[parameter.name])}")

    if len(problems) > before:
        return None
    if runtime:
        return Part(found, path, **values)
    try:
        return construct(found, path, values)
    except ExperimentError as error:
        problems += error.problems
        return None


def _bind_value(value: Any, annotation: Any, path: str, problems: list[str]) -> Any:
    kind = component(annotation)
    if kind is not None:
        if value is None and type(None) in get_args(annotation):
            return None
        return _bind_node(value, kind, path, problems)
    if isinstance(value, int) and abs(value) >= 2**63:
        problems.append(f"{path} must be {describe(annotation)} that fits into 64 bits, got {show(value)}")
        return None
    try:
        # Strict JSON mode: no True for 1 and no "3" for 3, but lists for tuples and text for paths.
        adapter = TypeAdapter(annotation, config=ConfigDict(allow_inf_nan=False))
        return adapter.validate_json(json.dumps(value), strict=True)
    except (ValidationError, TypeError, ValueError) as error:
        inner = _inner_place(error)
        problems.append(f"{path}{inner} must be {describe(annotation)}, got {show(value)}")
        return None


def component(annotation: Any) -> type | None:
    """The class that a nested node must be: X of `X`, `Part[X]` and of either `| None`; None for plain values."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return component(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        kinds = [component(argument) for argument in get_args(annotation)]
        return next((kind for kind in kinds if kind is not None), None)
    if origin is Part:
        return get_args(annotation)[0]
    is_ours = inspect.isclass(annotation) and annotation.__module__.split(".")[0] == PACKAGE
    return annotation if is_ours else None


def _kind(annotation: Any) -> str:
    kind = component(annotation)
    return f"a {kind.__name__} (a mapping with {TARGET})" if kind else describe(annotation)


def _unknown(key: Any, path: str, names: list[str]) -> str:
    place = f"{path}.{key}" if path else str(key)
    close = difflib.get_close_matches(str(key), names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{place} is not a setting; {hint}{path or 'the config'} has: {', '.join(sorted(names)) or 'no settings'}"


def _inner_place(error: Exception) -> str:
    """The place inside a list that pydantic complains of, as `[2]`."""
    if not isinstance(error, ValidationError):
        return ""
    loc = error.errors()[0]["loc"]
    return "".join(f"[{step}]" for step in loc if isinstance(step, int))


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    type(None): "null",
    None: "null",
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
