"""Constructors as documentation: the meaning of each setting from the docstrings, and a JSON Schema for editors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from typing import Any, get_args

from pydantic import TypeAdapter

from attnlab.config.binding import TARGET, class_named, component, constructor_hints, known_targets, settings_of

_ENTRY = re.compile(r"( *)(\w+(?:, \w+)*): (.+)")


def summary(target: type) -> str:
    """The first paragraph of a class's docstring, in one line."""
    return " ".join(inspect.cleandoc(target.__doc__ or "").partition("\n\n")[0].split())


def meanings(target: type) -> dict[str, str]:
    """{setting: its meaning}, from the lines `name: meaning` of the docstrings of a class and of its bases."""
    found: dict[str, str] = {}
    for base in reversed(target.__mro__):
        names: list[str] = []  # of the entry that a line may go on with
        indent = 0
        for line in inspect.cleandoc(base.__doc__ or "").splitlines():
            entry = _ENTRY.fullmatch(line)
            if entry and settings_of(target).keys() >= {*entry[2].split(", ")}:
                names, indent = entry[2].split(", "), len(entry[1])
                found.update(dict.fromkeys(names, entry[3]))
            elif names and line.startswith(" " * (indent + 1)):
                found.update({name: f"{found[name]} {line.strip()}" for name in names})
            else:
                names = []
    values = {"None": "null", "True": "true", "False": "false"}  # as YAML has them
    return {name: re.sub(r"\b(None|True|False)\b", lambda word: values[word[0]], text) for name, text in found.items()}


def json_schema(alternatives: Mapping[str, Mapping[str, Any]], optional: Collection[str] = ()) -> dict[str, Any]:
    """The JSON Schema of a config that has one of several sets of sections.

    Args:
        alternatives: {title: {section: its annotation, or its schema as a dict}}.
        optional: sections that may be missing.
    """
    definitions: dict[str, Any] = {}
    options = [
        _object(title, {name: _schema(each, definitions) for name, each in sections.items()}, optional)
        for title, sections in alternatives.items()
    ]
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "oneOf": options, "$defs": dict(sorted(definitions.items()))}


def _schema(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one setting; those of the classes that it may name are added to the definitions."""
    if isinstance(annotation, dict):
        return annotation
    kind = component(annotation)
    if kind is None:
        return {} if annotation is Any else TypeAdapter(annotation).json_schema()
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # it may hold settings of its own kind
        known = known_targets(kind)
        own = {TARGET: {"type": "string", "not": {"enum": known}}}
        classes = [_class(target, definitions) for target in known]
        definitions[kind.__name__]["oneOf"] = [
            *classes,
            {"title": "a class of your own", "type": "object", "properties": own, "required": [TARGET]},
        ]
    reference = {"$ref": f"#/$defs/{kind.__name__}"}
    return {"anyOf": [reference, {"type": "null"}]} if type(None) in get_args(annotation) else reference


def _class(target: str, definitions: dict[str, Any]) -> dict[str, Any]:
    found = class_named(target, object)
    hints, known, settings = constructor_hints(found), meanings(found), settings_of(found)
    properties = {
        name: _schema(hints.get(name, Any), definitions) | ({"description": known[name]} if name in known else {})
        for name in settings
    }
    optional = [name for name, parameter in settings.items() if parameter.default is not parameter.empty]
    return _object(target, {TARGET: {"const": target}} | properties, optional) | {"description": summary(found)}


def _object(title: str, properties: dict[str, Any], optional: Collection[str] = ()) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }
