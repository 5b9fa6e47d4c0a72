"""Binding of config nodes to constructors: the constructor's signature is the schema.

A `_target_` may name any importable class of the right base, also one of the user's own. Its node
is checked against the class's signature before anything is read or built, and all problems are
reported together, each with its config path, what was given and what is allowed.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import json
import pkgutil
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Le, Lt, MinLen
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from attnlab.config.part import Part, construct
from attnlab.config.renamed import new_name, new_target
from attnlab.config.signature import (
    PACKAGE,
    belongs_to_seam,
    constructor_hints,
    declared_runtime_arguments,
    runtime_arguments,
    settings_of,
    takes_more_settings,
)
from attnlab.errors import ExperimentError, show

TARGET, PARTIAL = "_target_", "_partial_"
# Further keys by which Hydra's own `instantiate` would build a node another way.
HYDRA_KEYS = ("_args_", "_convert_", "_recursive_")


@dataclasses.dataclass(frozen=True, eq=False)  # hashable, as a part of an annotation is
class SettingTypes:
    """Annotations for the settings of a library's classes, which annotate them too loosely.

    `Annotated[Part[torch.optim.Optimizer], SettingTypes({"lr": PositiveFloat})]`: torch itself says
    `float | Tensor`. A class that has another kind of value there (Adafactor's `eps` is a pair)
    keeps its own annotation.
    """

    by_name: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Place:
    """What a place of the config takes: a node for a class of this kind.

    takes_partial: whether the program calls the class itself, with its first parameter and the
        settings of a node with `_partial_: true`.
    types: of settings, where the class's own annotations say less.
    caller_gives_rest: whether the settings that a node leaves out come later, from who calls it.
    """

    kind: type
    takes_partial: bool = False
    types: SettingTypes = SettingTypes({})
    caller_gives_rest: bool = False


def bind_sections(config: Mapping[str, Any], sections: Mapping[str, Any]) -> dict[str, Any]:
    """Bind the top level of a config, `sections` being the annotation of each key.

    Returns each section's value: an object, a Part, or a plain value. Raises ExperimentError with
    every problem.
    """
    with _all_problems() as problems:
        return _bind_all(config, sections, (), "", problems)


def bind(node: Any, kind: type, path: str = "") -> Any:
    """The object, or the Part, of one node with a `_target_` that must be a `kind`.

    Raises ExperimentError with every problem.
    """
    with _all_problems() as problems:
        return _bind_node(node, Place(kind), path, problems)


def bind_settings(given: Mapping[str, Any], target: type) -> dict[str, Any]:
    """The checked values of a constructor's settings.

    The checks are those of a node's settings. Raises ExperimentError with every problem.
    """
    with _all_problems() as problems:
        return _bind_settings(given, target, Place(object), "", problems)


@contextmanager
def _all_problems() -> Iterator[list[str]]:
    """A list for problems, which are raised together at the end of the block."""
    problems: list[str] = []
    yield problems
    if problems:
        raise ExperimentError(problems)


def _bind_node(node: Any, place: Place, path: str, problems: list[str]) -> Any:
    target = node.get(TARGET) if isinstance(node, Mapping) else None
    if target is None:
        hint = (
            "; to choose one by name, write slashes, as in model/attention=dot"
            if isinstance(node, str)
            else ""
        )
        problems.append(f"{path} must be {_kind(place.kind)}, got {show(node)}{hint}")
        return None
    try:
        found = class_named(target, place.kind)
    except ValueError as error:
        problems.append(_wrong_target(target, place.kind, path, error))
        return None

    before = len(problems)
    makes_part = _makes_part(node, found, place, path, problems)
    if makes_part and place.kind is object:
        place = dataclasses.replace(place, caller_gives_rest=True)
    settings = {key: value for key, value in node.items() if key not in (TARGET, PARTIAL)}
    values = _bind_settings(settings, found, place, path, problems)
    if len(problems) > before:
        return None
    if makes_part:
        return Part(found, path, **values)
    try:
        return construct(found, path, values)
    except ExperimentError as error:
        problems += error.problems
        return None


def _wrong_target(target: Any, kind: type, path: str, error: ValueError) -> str:
    """The problem with a `_target_` that is no class of the kind."""
    moved = new_target(target)
    if moved is not None:
        return f"{path}.{TARGET}: {target} is now {moved}"
    if kind is object:
        return f"{path}.{TARGET} must be a class, got {show(target)}: {error}"

    known = known_targets(kind)
    allowed = _with_article(kind)
    if known:
        allowed = f"one of {', '.join(known)}, or {_with_article(kind)} of your own"
    close = difflib.get_close_matches(str(target), known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"{path}.{TARGET} must be {allowed}, got {show(target)}: {error}{hint}"


def _makes_part(
    node: Mapping[str, Any], target: type, place: Place, path: str, problems: list[str]
) -> bool:
    """Whether a node gives a Part, which the program calls, and no object."""
    given = node.get(PARTIAL, False)
    is_called = place.takes_partial or belongs_to_seam(place.kind)
    where = f"{path}.{PARTIAL}" if path else PARTIAL
    if not isinstance(given, bool):
        problems.append(f"{where} must be true or false, got {show(given)}")
    elif place.takes_partial and not given:
        problems.append(
            f"{where} must be true: the program itself gives {target.__name__} its "
            f"{_first_parameter(target)}"
        )
    elif given and not is_called and place.kind is not object:
        problems.append(
            f"{where} must be false: it makes a function here, which is no {place.kind.__name__}"
        )
    return is_called or given is True


def _first_parameter(target: type) -> str:
    return next(iter(settings_of(target)), "arguments")


def setting_annotations(target: type, place: Place | None = None) -> dict[str, Any]:
    """{setting: its annotation} of a class, as a node in this place of the config may give them."""
    hints = constructor_hints(target)
    annotations = {name: hints.get(name, Any) for name in settings_of(target)}
    if place is None:
        return annotations

    if place.takes_partial:
        annotations.pop(_first_parameter(target), None)
    for name, annotation in place.types.by_name.items():
        if name in annotations and _is_pair(annotations[name]) == _is_pair(annotation):
            annotations[name] = annotation
    return annotations


def _is_pair(annotation: Any) -> bool:
    return get_origin(annotation) is tuple


def _bind_settings(
    given: Mapping[str, Any], target: type, place: Place, path: str, problems: list[str]
) -> dict[str, Any]:
    annotations = setting_annotations(target, place)
    settings = settings_of(target)
    settings = {name: settings[name] for name in annotations}
    optional = [
        name
        for name, parameter in settings.items()
        if place.caller_gives_rest or parameter.default is not parameter.empty
    ]

    # Also `**kwargs` never get them: to a constructor they would be raw data.
    of_hydra = [name for name in HYDRA_KEYS if name in given and name not in settings]
    problems += [_of_hydra(name, path) for name in of_hydra]
    given = {name: value for name, value in given.items() if name not in of_hydra}

    unnamed = {}
    if takes_more_settings(target):
        reserved = {*settings, *declared_runtime_arguments(target)}
        unnamed = {
            name: value
            for name, value in given.items()
            if isinstance(name, str) and name not in reserved
        }
    named = {name: value for name, value in given.items() if name not in unnamed}
    built = {
        name: _built(value, f"{path}.{name}" if path else name, problems)
        for name, value in unnamed.items()
    }

    # An author may have meant a keyword-only parameter for the program to give.
    offered = ", ".join(declared_runtime_arguments(target))
    hints_of_missing = {
        name: f"; the program itself gives {offered}"
        for name, parameter in settings.items()
        if offered and parameter.kind is parameter.KEYWORD_ONLY
    }
    return _bind_all(named, annotations, optional, path, problems, hints_of_missing) | built


def _bind_all(
    given: Mapping[str, Any],
    annotations: Mapping[str, Any],
    optional: Sequence[str],
    path: str,
    problems: list[str],
    hints_of_missing: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The checked values of the given settings, by name.

    hints_of_missing: {name: what to add to the message if that setting is missing}.
    """
    problems += [_unknown(key, path, list(annotations)) for key in given if key not in annotations]
    values = {}
    for name, annotation in annotations.items():
        place = f"{path}.{name}" if path else name
        if name in given:
            values[name] = _bind_value(given[name], annotation, place, problems)
        elif name not in optional:
            problems.append(
                f"{place} is missing; it must be "
                f"{_kind(annotation)}{hints_of_missing.get(name, '')}"
            )
    return values


def class_named(target: object, kind: type) -> type:
    """The class with this dotted name.

    Raises ValueError if it cannot be imported, or is not a concrete `kind`.
    """
    module_name, _, name = target.rpartition(".") if isinstance(target, str) else ("", "", "")
    if not module_name or module_name.startswith("."):
        raise ValueError("it is not the dotted name of a class")
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ImportError as error:
        raise ValueError(
            f"it cannot be imported ({error}); install it, or run Python where it finds it"
        ) from error
    if found is None:
        raise ValueError(f"{module_name} has no {name}")
    if not inspect.isclass(found) and kind is object:
        raise ValueError("it is not a class")
    if not (inspect.isclass(found) and issubclass(found, kind)):
        raise ValueError(f"it is not a subclass of {kind.__module__}.{kind.__name__}")
    if inspect.isabstract(found):
        if found.__module__.partition(".")[0] == PACKAGE:
            raise ValueError("it is an abstract base class")
        missing = sorted(
            name
            for name in dir(found)
            if getattr(getattr(found, name, None), "__isabstractmethod__", False)
        )
        methods = "method" if len(missing) == 1 else "methods"
        raise ValueError(
            f"it lacks the {methods} {', '.join(missing)}, which every {kind.__name__} has"
        )
    try:
        inspect.signature(found)
    except ValueError as error:  # of a class written in C
        raise ValueError("its constructor does not say what it takes") from error
    return found


def known_targets(kind: type) -> list[str]:
    """The dotted names of attnlab's classes of a kind.

    These are the classes in the module of the kind, or else in the modules beside it. Classes that
    the program itself wraps around the configured one are left out. For a kind from another
    library: the names that its package offers.
    """
    home = importlib.import_module(kind.__module__)
    package = importlib.import_module(kind.__module__.rpartition(".")[0] or kind.__module__)
    if package.__name__.partition(".")[0] != PACKAGE:
        return _offered_classes(home, kind) or _offered_classes(package, kind)
    names = [
        info.name
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        if not info.ispkg
    ]
    return _concrete_classes([home], kind) or _concrete_classes(
        map(importlib.import_module, names), kind
    )


def _offered_classes(module: types.ModuleType, kind: type) -> list[str]:
    """The dotted names of a kind's classes that a library's module offers."""
    offered = {
        name: found
        for name, found in vars(module).items()
        if inspect.isclass(found) and not name.startswith("_")
    }
    return sorted(
        f"{module.__name__}.{name}"
        for name, found in offered.items()
        if issubclass(found, kind) and found is not kind and not inspect.isabstract(found)
    )


def _concrete_classes(modules: Iterable[types.ModuleType], kind: type) -> list[str]:
    return sorted(
        f"{module.__name__}.{name}"
        for module in modules
        for name, found in vars(module).items()
        if inspect.isclass(found) and issubclass(found, kind) and not inspect.isabstract(found)
        if found.__module__ == module.__name__ and not _is_given_another(found, kind)
    )


def _is_given_another(found: type, kind: type) -> bool:
    """Whether one of the class's run-time arguments makes a component of the kind."""
    hints = constructor_hints(found)
    return any(kind in get_args(hints.get(name)) for name in runtime_arguments(found))


def _bind_value(value: Any, annotation: Any, path: str, problems: list[str]) -> Any:
    if annotation is Any:  # the parameter has no annotation
        return _built(value, path, problems)
    if _is_function(annotation) and isinstance(value, Mapping) and value.get(PARTIAL) is True:
        return _built(value, path, problems)
    of_entries = _entries_with_nodes(annotation)
    if of_entries is not None:
        return _bind_entries(value, of_entries, path, problems)
    places = places_of(annotation)
    if places:
        if value is None and type(None) in get_args(annotation):
            return None
        plain = _plain_alternatives(annotation)
        if not plain or (isinstance(value, Mapping) and TARGET in value):
            return _bind_node(value, _fitting(places, value), path, problems)
        annotation = Union[tuple(plain)]  # noqa: UP007
    try:
        # Strict JSON mode: no True for 1 and no "3" for 3, but lists for tuples and text for paths.
        adapter = TypeAdapter(annotation, config=ConfigDict(allow_inf_nan=False))
    except (PydanticUserError, NameError):
        return _built(value, path, problems)  # no type that plain data could be checked against
    try:
        return adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        wrong = [_wrong_entry(value, annotation, details["loc"]) for details in error.errors()]
    except TypeError:
        wrong = [("", annotation, value)]

    # The alternatives of a union are each an error, of one entry or of the whole.
    entries = {
        inner: f"{path}{inner} must be {describe(kind)}, got {show(given)}"
        for inner, kind, given in wrong
    }
    problems += [entries[""]] if "" in entries else entries.values()
    return None


def _entries_with_nodes(annotation: Any) -> Any:
    """X of `dict[str, X]` where X is a class that a node names; None for all else."""
    arguments = get_args(annotation)
    if get_origin(annotation) is not dict or not places_of(arguments[1]):
        return None
    return arguments[1]


def _bind_entries(value: Any, annotation: Any, path: str, problems: list[str]) -> Any:
    """The parts of a mapping from names of the user's to nodes."""
    if not isinstance(value, Mapping) or TARGET in value:
        kind = annotation.__name__
        problems.append(
            f"{path} must be a mapping of names to {kind}s, {{}} for none, got {show(value)}; to "
            f"add one, write +{path}.<name>.{TARGET}=<a {kind}>"
        )
        return None
    return {
        name: _bind_value(node, annotation, f"{path}.{name}", problems)
        for name, node in value.items()
    }


def _wrong_entry(value: Any, annotation: Any, steps: Sequence[int | str]) -> tuple[str, Any, Any]:
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
        found = [_annotation_of_entries(argument, step) for argument in arguments]
        return next((each for each in found if each is not None), None)
    if isinstance(step, str):
        return arguments[1] if origin is dict else None
    if origin is tuple and Ellipsis not in arguments:
        return arguments[step] if step < len(arguments) else None
    return arguments[0] if origin in (list, tuple) else None


def _built(value: Any, path: str, problems: list[str]) -> Any:
    """A value without an annotation, in which each node with a `_target_` is built."""
    if isinstance(value, Mapping) and TARGET in value:
        return _bind_node(value, Place(object), path, problems)
    if isinstance(value, Mapping):
        return {name: _built(inner, f"{path}.{name}", problems) for name, inner in value.items()}
    if isinstance(value, list):
        return [_built(inner, f"{path}[{index}]", problems) for index, inner in enumerate(value)]
    return value


def component(annotation: Any) -> type | None:
    """The class that a nested node must be, or None for plain values.

    It is X for the annotations `X` and `Part[X]`, also with `| None`; the first of several.
    """
    places = places_of(annotation)
    return places[0].kind if places else None


def places_of(annotation: Any) -> list[Place]:
    """What a setting with this annotation takes as a node; empty for plain values."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        types_given = [each for each in arguments[1:] if isinstance(each, SettingTypes)]
        places = places_of(arguments[0])
        if not types_given:
            return places
        return [dataclasses.replace(place, types=types_given[0]) for place in places]
    if origin in (Union, types.UnionType):
        return [place for argument in arguments for place in places_of(argument)]
    if origin is Part:
        kind = arguments[0]
        # The base class of a seam says what its classes are given; a library's class does not.
        return [Place(kind, takes_partial=not belongs_to_seam(kind))]
    if not inspect.isclass(annotation) or issubclass(annotation, Enum):
        return []
    is_of_python = annotation.__module__.split(".")[0] in sys.stdlib_module_names
    return [] if is_of_python else [Place(annotation)]


def _fitting(places: Sequence[Place], node: Any) -> Place:
    """The place that takes the class of a node; the first one if none does."""
    if len(places) == 1 or not isinstance(node, Mapping):
        return places[0]
    for place in places:
        try:
            class_named(node.get(TARGET), place.kind)
        except ValueError:
            continue
        return place
    is_partial = node.get(PARTIAL) is True
    return next((place for place in places if place.takes_partial == is_partial), places[0])


def _is_function(annotation: Any) -> bool:
    """Whether a setting takes a function, which a node with `_partial_: true` makes."""
    if get_origin(annotation) in (Union, types.UnionType):
        return any(_is_function(argument) for argument in get_args(annotation))
    return Callable in (annotation, get_origin(annotation))


def _plain_alternatives(annotation: Any) -> list[Any]:
    """The alternatives of a union for a plain value: [str] for `str | SomeClass | None`."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return []
    return [
        each for each in get_args(annotation) if each is not type(None) and component(each) is None
    ]


def _kind(annotation: Any) -> str:
    kind = component(annotation)
    return f"{_with_article(kind)} (a mapping with {TARGET})" if kind else describe(annotation)


def _with_article(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _of_hydra(key: str, path: str) -> str:
    place = f"{path}.{key}" if path else key
    return (
        f"{place} is a key of Hydra's `instantiate`, which attnlab does not use to build a part; "
        "leave it out"
    )


def _unknown(key: Any, path: str, names: list[str]) -> str:
    place = f"{path}.{key}" if path else str(key)
    renamed = new_name(place)
    if renamed is not None and renamed.rpartition(".")[2] in names:
        return f"{place} is now {renamed}"
    close = difflib.get_close_matches(str(key), names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return (
        f"{place} is not a setting; {hint}{path or 'the config'} has: "
        f"{', '.join(sorted(names)) or 'no settings'}"
    )


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


def describe(annotation: Any) -> str:
    """`Annotated[float, Field(ge=0, le=1)]` is "a number between 0 and 1"."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        if arguments[0] is str and _bounds(list(arguments[1:])):
            return "text that is not empty"
        for item in arguments[1:]:
            if isinstance(item, FieldInfo) and item.description:
                return item.description
        return describe(arguments[0]) + _bounds(list(arguments[1:]))
    if origin is Literal:
        choices = [
            json.dumps(choice) if isinstance(choice, bool) else str(choice) for choice in arguments
        ]
        return choices[0] if len(choices) == 1 else "one of " + ", ".join(choices)
    if origin in (Union, types.UnionType):
        # A whole number is a number.
        words = [
            describe(argument)
            for argument in arguments
            if not (argument is int and float in arguments)
        ]
        if len(words) > 2 and words[-1] == _WORDS[bool]:
            return ", ".join(words)
        is_of_mapping = any(get_origin(argument) is dict for argument in arguments)
        return (", or " if is_of_mapping and "," in words[0] else " or ").join(words)
    if origin is dict:
        return f"a mapping of {describe(arguments[0])} to {describe(arguments[1])}"
    if origin in (list, tuple):
        inner = " and ".join(
            describe(argument) for argument in arguments if argument is not Ellipsis
        )
        return f"a list of {inner}"
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return "one of " + ", ".join(str(member.value) for member in annotation)
    if dataclasses.is_dataclass(annotation):
        return f"a mapping with {', '.join(each.name for each in dataclasses.fields(annotation))}"
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _bounds(metadata: list[Any]) -> str:
    bounds: dict[type, Any] = {}
    for item in metadata:
        parts = (
            item.metadata
            if isinstance(item, FieldInfo)
            else item
            if isinstance(item, GroupedMetadata)
            else [item]
        )
        bounds |= {type(part): part for part in parts if isinstance(part, BaseMetadata)}
    if {Ge, Le} <= bounds.keys():
        return f" between {bounds[Ge].ge} and {bounds[Le].le}"
    texts = {Ge: "of at least {.ge}", Le: "of at most {.le}", Gt: "above {.gt}", Lt: "below {.lt}"}
    texts[MinLen] = "with at least {.min_length} " + (
        "entry" if bounds.get(MinLen) == MinLen(1) else "entries"
    )
    words = [text.format(bounds[bound]) for bound, text in texts.items() if bound in bounds]
    return " " + " and ".join(words) if words else ""
